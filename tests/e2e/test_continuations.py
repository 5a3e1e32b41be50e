"""Going on from responses that did not end as they should."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from attache_core.json_codec import Json
from attache_core.testing.model_script import call, function_calls, incomplete, stream_error, text
from e2e.stage import Stage, check, open_stage
from e2e.test_conversation_turns import said

ONE_ROUND = """
chains:
  responses:
    - {filter: validate}
    - {filter: persist}
    - {filter: rehydrate}
    - {filter: tool_dispatch, max_rounds: 1, loop: [{filter: upstream_round}]}
"""
WEATHER: Json = {"type": "function", "name": "get_weather", "parameters": {"type": "object", "properties": {}}}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def short_stage(placement: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    """A gateway whose turns have one round."""
    async with open_stage(placement, tmp_path_factory.mktemp(placement), gateway_yaml=ONE_ROUND) as stage:
        yield stage


async def test_incomplete_response_is_continued_with_what_was_said(stage: Stage, stream: bool) -> None:
    stage.model.play(incomplete("max_output_tokens", text("Once upon a")), text(" time."))
    first = check(await stage.ask(input="Tell me a story", max_output_tokens=16, stream=stream))

    second = check(await stage.ask(input="Go on", previous_response_id=first.body["id"], stream=stream))

    assert (first.body["status"], second.text) == ("incomplete", " time.")
    assert said(stage.model.asked[1]["input"]) == ["Tell me a story", "Once upon a", "Go on"]


async def test_call_of_an_incomplete_response_waits_for_its_output(stage: Stage, stream: bool) -> None:
    stage.model.play(incomplete("max_output_tokens", function_calls(call("get_weather", {}))), text("Sunny."))
    first = check(await stage.ask(input="Weather?", tools=[WEATHER], stream=stream))
    name = first.body["output"][0]["call_id"]
    again: Json = {"previous_response_id": first.body["id"], "tools": [WEATHER], "stream": stream}

    refused = await stage.ask(input="Go on", **again)
    output = {"type": "function_call_output", "call_id": name, "output": "sunny"}
    check(await stage.ask(input=[output], **again))

    assert (refused.status, refused.body["error"]["param"]) == (400, "input")
    assert name in refused.body["error"]["message"]
    kinds = [item.get("type", "message") for item in stage.model.asked[1]["input"]]
    assert kinds == ["message", "function_call", "function_call_output"]


async def test_response_that_ran_out_of_rounds_is_continued_with_its_calls(short_stage: Stage, stream: bool) -> None:
    short_stage.model.play(function_calls(call("add", {"a": 1, "b": 2})), text("Three."))
    tools = [short_stage.mcp_tool()]
    first = check(await short_stage.ask(input="1 + 2?", tools=tools, stream=stream))

    second = check(
        await short_stage.ask(input="So?", previous_response_id=first.body["id"], tools=tools, stream=stream)
    )

    assert (first.body["status"], second.text) == ("incomplete", "Three.")
    kinds = [item.get("type", "message") for item in short_stage.model.asked[1]["input"]]
    assert kinds == ["message", "function_call", "function_call_output", "message"]


async def test_failed_response_is_refused(stage: Stage, stream: bool) -> None:
    stage.model.play(stream_error("broken", reply=text("Half")))
    failed = await stage.ask(input="Hi", stream=True)

    refused = await stage.ask(input="Go on", previous_response_id=failed.body["id"], stream=stream)

    assert (refused.status, refused.body["error"]) == (
        400,
        {
            "message": f"Previous response with id '{failed.body['id']}' has status 'failed' and cannot be continued: "
            "continue an earlier response instead.",
            "type": "invalid_request_error",
            "param": "previous_response_id",
            "code": "previous_response_not_continuable",
        },
    )
    assert len(stage.model.asked) == 1


async def test_response_whose_tool_failed_is_continued_with_the_call_and_its_output(stage: Stage, stream: bool) -> None:
    stage.model.play(function_calls(call("fail", {"message": "out of paper"})), text("It failed."), text("Sorry."))
    first = check(await stage.ask(input="Print", tools=[stage.mcp_tool()], stream=stream))

    check(await stage.ask(input="Again?", previous_response_id=first.body["id"], stream=stream))

    told = stage.model.asked[2]["input"]
    kinds = [item.get("type", "message") for item in told]
    assert kinds == ["message", "function_call", "function_call_output", "message", "message"]
    assert told[1:3] == stage.model.asked[1]["input"][1:3]
    assert "out of paper" in told[2]["output"]
