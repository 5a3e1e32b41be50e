"""One chain in front of several inference servers, each of which is asked in its own way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from attache_core.testing.model_script import call, function_calls, held, text
from core.events.canonical_stream import check_stream
from e2e.stage import Answered, Stage, answered, open_stage

OTHERS = (
    "chat: {url: MODEL, api: chat_completions}, patient: {url: MODEL, headers_timeout_s: 20}, "
    "hasty: {url: MODEL, headers_timeout_s: 0.3, idle_timeout_s: 20}"
)
ROUTES = """
routes:
  - {match: {path: /chat/v1/responses}, chain: responses, upstream: chat}
  - {match: {path: /patient/v1/responses}, chain: responses, upstream: patient}
  - {match: {path: /hasty/v1/responses}, chain: responses, upstream: hasty}
"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def several_stage(placement: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    folder = tmp_path_factory.mktemp(f"several-{placement}")
    async with open_stage(placement, folder, gateway_yaml=ROUTES, other_upstreams_yaml=OTHERS) as stage:
        yield stage


@pytest.fixture
def several(several_stage: Stage) -> Stage:
    several_stage.model.play()
    return several_stage


async def ask(stage: Stage, upstream: str, stream: bool, **body: object) -> Answered:
    path = f"/{upstream}/v1/responses" if upstream else "/v1/responses"
    request = {"model": "m", "input": "Hi", "stream": stream, **body}
    return answered(await stage.client.post(path, json=request))


@pytest.mark.parametrize(
    ("upstream", "path"), [("", "/v1/responses"), ("patient", "/v1/responses"), ("chat", "/v1/chat/completions")]
)
async def test_each_route_asks_its_upstream_over_its_api(
    several: Stage, stream: bool, upstream: str, path: str
) -> None:
    several.model.play(text("Hello."))

    answer = await ask(several, upstream, stream)

    assert (answer.status, answer.body["object"], answer.text) == (200, "response", "Hello.")
    assert [request.path for request in several.model.requests] == [path]
    if stream:
        check_stream(answer.decoded)


@pytest.mark.parametrize("upstream", ["", "chat"])
async def test_rounds_of_a_turn_stay_with_their_upstream(several: Stage, stream: bool, upstream: str) -> None:
    several.model.play(function_calls(call("echo", {"message": "x"})), text("Done."))

    answer = await ask(several, upstream, stream, tools=[several.mcp_tool()])

    assert answer.text == "Done."
    assert len({request.path for request in several.model.requests}) == 1
    assert len(several.model.requests) == 2


async def test_conversation_goes_on_with_another_upstream(several: Stage, stream: bool) -> None:
    several.model.play(text("One."), text("Two."))

    first = await ask(several, "", stream)
    second = await ask(several, "chat", stream, previous_response_id=first.body["id"])

    assert [first.text, second.text] == ["One.", "Two."]
    assert len(several.model.asked[1]["messages"]) == 3


async def test_each_upstream_is_waited_for_as_long_as_it_says(several: Stage, stream: bool) -> None:
    late = asyncio.Event()
    several.model.set(lambda _: held(late, text("At last.")))

    async with asyncio.TaskGroup() as tasks:
        patient = tasks.create_task(ask(several, "patient", stream))
        await several.model.wait_until_asked()
        hasty = await ask(several, "hasty", stream)
        late.set()

    assert (hasty.status, hasty.body["error"]["code"]) == (504, "upstream_timeout")
    assert (patient.result().status, patient.result().text) == (200, "At last.")
