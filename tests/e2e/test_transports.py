"""Whole turns over each transport between Envoy and the workers, whichever all other tests use."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio

from attache_core.testing.model_script import call, function_calls, stalls_after, text
from e2e.stage import Stage, check, open_stage


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=["lean", "grpcio"])
async def transport_stage(
    request: pytest.FixtureRequest, placement: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stage]:
    folder = tmp_path_factory.mktemp(request.param)
    async with open_stage(placement, folder, transport=request.param) as stage:
        yield stage


async def test_turn_with_a_tool_and_a_turn_after_it(transport_stage: Stage, stream: bool) -> None:
    stage = transport_stage
    stage.model.play(function_calls(call("add", {"a": 1, "b": 2})), text("Three."), text("Again."))
    first = check(await stage.ask(input="1 + 2?", stream=stream, tools=[stage.mcp_tool()]))
    second = check(await stage.ask(input="Again?", stream=stream, previous_response_id=first.body["id"]))
    assert (first.item_types, first.text, second.text) == (
        ["mcp_list_tools", "mcp_call", "message"],
        "Three.",
        "Again.",
    )


async def test_large_request_and_large_answer_are_whole(transport_stage: Stage, stream: bool) -> None:
    stage, words = transport_stage, "word " * 200_000
    stage.model.play(text(words, deltas=4))
    answer = check(await stage.ask(input=words, stream=stream))
    (asked,) = stage.model.asked
    assert (answer.text, words in str(asked["input"])) == (words, True)


async def test_client_that_leaves_ends_its_turn(transport_stage: Stage) -> None:
    stage = transport_stage
    stage.model.play(stalls_after(3, text("one two three four")))
    body = {"model": "m", "input": "Hi", "stream": True, "store": False}
    async with stage.client.stream("POST", "/v1/responses", json=body) as response:
        async for _ in response.aiter_bytes():
            break
    await stage.wait_until_idle()


async def test_error_before_the_answer_is_an_http_error(transport_stage: Stage, stream: bool) -> None:
    response: httpx.Response = await transport_stage.client.post(
        "/v1/responses", json={"model": "m", "input": 3, "stream": stream}
    )
    assert (response.status_code, response.json()["error"]["type"]) == (400, "invalid_request_error")
