"""A filter from somebody else's package, placed by the gateway file alone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from attache_core.testing.model_script import call, function_calls, text
from e2e.installed import installed_example
from e2e.stage import Stage, open_stage


@pytest.fixture(scope="session")
def installed_package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with installed_example("acme-guardrail", tmp_path_factory.mktemp("site")) as package:
        yield package


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def guarded(
    placement: str, installed_package: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stage]:
    yaml = (installed_package / "gateway.yaml").read_text()
    chains = yaml[yaml.index("chains:") :]
    async with open_stage(placement, tmp_path_factory.mktemp("guarded"), gateway_yaml=chains) as stage:
        yield stage


async def test_filter_above_the_loop_refuses_a_turn_before_anything_happens(guarded: Stage, stream: bool) -> None:
    guarded.model.play(text("Never said."))

    answer = await guarded.ask(input="something Forbidden", stream=stream)

    assert (answer.status, answer.body["error"]["code"]) == (400, "guardrail_blocked")
    assert guarded.model.asked == []


async def test_filter_above_the_loop_does_not_see_results_of_tools(guarded: Stage, stream: bool) -> None:
    guarded.model.play(function_calls(call("echo", {"text": "forbidden"})), text("Echoed."))

    answer = await guarded.ask(input="Echo", tools=[guarded.mcp_tool()], stream=stream)

    assert (answer.status, answer.text) == (200, "Echoed.")


async def test_filter_inside_the_loop_sees_every_round(guarded: Stage, stream: bool) -> None:
    guarded.model.play(function_calls(call("echo", {"text": "classified"})), text("Never said."))

    answer = await guarded.ask(input="Echo", tools=[guarded.mcp_tool()], stream=stream)

    assert len(guarded.model.asked) == 1
    if stream:
        assert answer.types[-1] == "response.failed"
        assert answer.body["error"] == {"code": "guardrail_blocked", "message": "The guardrail refused this input."}
    else:
        assert (answer.status, answer.body["error"]["code"]) == (400, "guardrail_blocked")
