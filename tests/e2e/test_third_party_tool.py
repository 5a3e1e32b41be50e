"""A tool type from somebody else's package, with its settings in the gateway file."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from attache_core.json_codec import decode
from attache_core.testing.model_script import call, function_calls, text
from core.events.canonical_stream import check_stream
from e2e.installed import installed_example
from e2e.stage import Answered, Stage, open_stage

CANARY = "canary-acme-51d0"
SETTINGS = f"tools: {{acme_lookup: {{currency: USD, api_key: {CANARY}}}}}\n"
BOLTS = {"type": "acme_lookup", "catalog": "bolts"}
FOUND = "0.08 USD, in stock"


@pytest.fixture(scope="module")
def installed_package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with installed_example("acme-lookup", tmp_path_factory.mktemp("site")) as package:
        yield package


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shop(
    placement: str, installed_package: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stage]:
    folder = tmp_path_factory.mktemp("shop")
    async with open_stage(placement, folder, gateway_yaml=SETTINGS, only_the_api=False) as stage:
        yield stage


def check(answer: Answered) -> Answered:
    """The same answer, which is a success; a stream of it is valid but for the types that are not the API's."""
    assert answer.status == 200, answer.body
    if answer.events:
        check_stream(answer.decoded, openai_types=False)
    return answer


async def test_installed_type_runs_within_a_turn_as_the_gateway_file_sets_it(shop: Stage, stream: bool) -> None:
    shop.model.play(function_calls(call("acme_lookup", {"part": "M4"})), text("Eight cents."))

    answer = check(await shop.ask(input="How much?", tools=[BOLTS], tool_choice={"type": "acme_lookup"}, stream=stream))

    looked_up, said = answer.body["output"]
    assert (looked_up["type"], looked_up["status"], looked_up["found"]) == ("acme_lookup_call", "completed", FOUND)
    assert (said["type"], answer.text, answer.body["tools"]) == ("message", "Eight cents.", [BOLTS])
    assert shop.model.asked[0]["tool_choice"] == {"type": "function", "name": "acme_lookup"}
    assert (await shop.get(f"/v1/responses/{answer.body['id']}")).json() == answer.body
    if stream:
        of_the_call = [event["type"] for event in answer.events if event.get("output_index") == 0]
        assert of_the_call == ["response.output_item.added", "acme.lookup_call.looking_up", "response.output_item.done"]


async def test_call_of_an_installed_type_is_told_in_the_next_turn(shop: Stage, stream: bool) -> None:
    shop.model.play(function_calls(call("acme_lookup", {"part": "M4"})), text("Eight cents."), text("Yes."))
    first = check(await shop.ask(input="How much?", tools=[BOLTS], stream=stream))

    check(await shop.ask(input="Sure?", previous_response_id=first.body["id"], tools=[BOLTS], stream=stream))

    _, made, answered, *_ = shop.model.asked[2]["input"]
    assert (made["type"], made["name"], decode(made["arguments"])) == ("function_call", "acme_lookup", {"part": "M4"})
    assert (answered["type"], answered["call_id"], answered["output"]) == (
        "function_call_output",
        made["call_id"],
        FOUND,
    )


async def test_declaration_that_the_type_refuses_is_answered_400(shop: Stage, stream: bool) -> None:
    answer = await shop.ask(input="How much?", tools=[{"type": "acme_lookup", "catalog": 7}], stream=stream)
    assert (answer.status, answer.body["error"]["param"]) == (400, "tools[0].catalog")


async def test_secret_among_the_settings_of_an_installed_type_is_shown_nowhere(shop: Stage) -> None:
    assert CANARY not in repr(shop.settings) + shop.settings.model_dump_json() + str(shop.settings.model_dump())
    stored = b"".join(shop.storage.with_name(name).read_bytes() for name in ("attache.db", "attache.db-wal"))
    assert CANARY.encode() not in stored
