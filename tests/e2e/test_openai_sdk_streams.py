"""The accumulators and iterators of the official OpenAI SDK read the gateway's streams."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
import pytest_asyncio

from attache_core.json_codec import decode
from attache_core.testing.model_script import (
    call,
    ends_without_terminal,
    function_calls,
    incomplete,
    reasoning_then,
    stream_error,
    text,
)
from e2e.sdk_client import FORECAST, SNOW, Forecast, open_sdk
from e2e.stage import Stage


@pytest_asyncio.fixture(loop_scope="session")
async def sdk(stage: Stage) -> AsyncIterator[openai.AsyncOpenAI]:
    async with open_sdk(stage) as client:
        yield client


async def test_create_with_stream_gives_numbered_events_and_one_end(stage: Stage, sdk: openai.AsyncOpenAI) -> None:
    stage.model.play(text("Hello there."))

    stream = await sdk.responses.create(model="attache-demo", input="Hi", stream=True)
    events = [event async for event in stream]

    assert [event.type for event in events] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert [event.sequence_number for event in events] == list(range(len(events)))


async def test_structured_output_is_parsed_from_a_stream(stage: Stage, sdk: openai.AsyncOpenAI) -> None:
    stage.model.play(text(SNOW.model_dump_json(), deltas=5))

    async with sdk.responses.stream(model="attache-demo", input="Weather?", text_format=Forecast) as stream:
        snapshots = [event.snapshot async for event in stream if event.type == "response.output_text.delta"]
        final = await stream.get_final_response()

    assert snapshots[-1] == SNOW.model_dump_json()
    assert len(snapshots) == 5
    assert final.output_parsed == SNOW


async def test_parallel_calls_are_accumulated_each_for_itself(stage: Stage, sdk: openai.AsyncOpenAI) -> None:
    stage.model.play(
        function_calls(call("get_forecast", {"city": "Oslo"}), call("get_forecast", {"city": "Rome"})),
        text("Snow, sun."),
    )

    snapshots: dict[int, str] = {}
    async with sdk.responses.stream(model="attache-demo", input="Weather?", tools=[FORECAST]) as stream:
        async for event in stream:
            if event.type == "response.function_call_arguments.delta":
                snapshots[event.output_index] = event.snapshot
        final = await stream.get_final_response()
    conversation: Any = [{"role": "user", "content": "Weather?"}, *final.output]
    conversation += [
        {"type": "function_call_output", "call_id": item.call_id, "output": "dry"}
        for item in final.output
        if item.type == "function_call"
    ]
    async with sdk.responses.stream(model="attache-demo", input=conversation, tools=[FORECAST]) as stream:
        answer = await stream.get_final_response()

    arguments = [item.arguments for item in final.output if item.type == "function_call"]
    assert [decode(each) for each in arguments] == [{"city": "Oslo"}, {"city": "Rome"}]
    assert {index: decode(each) for index, each in snapshots.items()} == {0: {"city": "Oslo"}, 1: {"city": "Rome"}}
    assert answer.output_text == "Snow, sun."


async def test_stream_continues_a_previous_response(stage: Stage, sdk: openai.AsyncOpenAI) -> None:
    stage.model.play(text("Hello, Ada."), text("Ada."))

    async with sdk.responses.stream(model="attache-demo", input="I am Ada.") as stream:
        first = await stream.get_final_response()
    async with sdk.responses.stream(model="attache-demo", input="Who?", previous_response_id=first.id) as stream:
        second = await stream.get_final_response()

    assert (second.previous_response_id, second.output_text) == (first.id, "Ada.")


async def test_reasoning_is_streamed_before_the_text(stage: Stage, sdk: openai.AsyncOpenAI) -> None:
    stage.model.play(reasoning_then("They greet me.", "Hello."))

    async with sdk.responses.stream(model="attache-demo", input="Hi") as stream:
        deltas = [
            (event.type, event.delta)
            async for event in stream
            if event.type in ("response.reasoning_text.delta", "response.output_text.delta")
        ]
        final = await stream.get_final_response()

    thought = "".join(delta for kind, delta in deltas if kind == "response.reasoning_text.delta")
    assert (thought, deltas[-1]) == ("They greet me.", ("response.output_text.delta", "Hello."))
    assert [item.type for item in final.output] == ["reasoning", "message"]


async def test_incomplete_stream_ends_with_response_incomplete(stage: Stage, sdk: openai.AsyncOpenAI) -> None:
    stage.model.play(incomplete("max_output_tokens", text("Once upon a")))

    stream = await sdk.responses.create(model="attache-demo", input="Tell", max_output_tokens=16, stream=True)
    events = [event async for event in stream]

    last = events[-1]
    assert last.type == "response.incomplete"
    assert (last.response.status, last.response.output_text) == ("incomplete", "Once upon a")


@pytest.mark.parametrize("asked", [True, False, None])
async def test_deltas_are_obfuscated_unless_the_client_says_no(
    stage: Stage, sdk: openai.AsyncOpenAI, asked: bool | None
) -> None:
    stage.model.play(text("Hello there."))
    options: Any = {} if asked is None else {"stream_options": {"include_obfuscation": asked}}

    stream = await sdk.responses.create(model="attache-demo", input="Hi", stream=True, **options)
    obfuscated = [
        "obfuscation" in (event.model_extra or {})
        async for event in stream
        if event.type == "response.output_text.delta"
    ]

    assert obfuscated == [asked is not False] * 2


@pytest.mark.parametrize("form", ["both", "error", "failed"])
async def test_stream_that_fails_ends_with_response_failed(stage: Stage, sdk: openai.AsyncOpenAI, form: Any) -> None:
    stage.model.play(stream_error("It broke.", form=form, reply=text("Half an")))

    assert await ending(sdk) == ("response.failed", "failed", "server_error", "Half an")


async def test_stream_that_only_stops_is_no_success(stage: Stage, sdk: openai.AsyncOpenAI) -> None:
    stage.model.play(ends_without_terminal(text("Half an")))

    kind, status, _, said = await ending(sdk)

    assert (kind, status, said) == ("response.failed", "failed", "Half an")


async def ending(sdk: openai.AsyncOpenAI) -> tuple[str, str | None, str | None, str]:
    """How a stream ends: the type of its last event, the response's status and error code, the text so far."""
    stream = await sdk.responses.create(model="attache-demo", input="Hi", stream=True)
    last = [event async for event in stream][-1]
    assert last.type in ("response.completed", "response.incomplete", "response.failed")
    code = last.response.error.code if last.response.error else None
    return last.type, last.response.status, code, last.response.output_text
