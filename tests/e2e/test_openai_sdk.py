"""The official OpenAI SDK cannot tell the gateway from OpenAI."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
import pytest_asyncio
from openai.types.responses import Response
from pydantic import BaseModel

from attache_core.testing.model_script import call, function_calls, http_error, incomplete, reasoning_then, text
from e2e.sdk_client import FORECAST, SNOW, Forecast, open_sdk
from e2e.stage import WAIT_S, Stage


@pytest_asyncio.fixture(loop_scope="session")
async def sdk(stage: Stage) -> AsyncIterator[openai.AsyncOpenAI]:
    async with open_sdk(stage) as client:
        yield client


async def test_create_and_retrieve_give_equal_responses(stage: Stage, sdk: openai.AsyncOpenAI) -> None:
    stage.model.play(text("Hello."))

    created = await sdk.responses.create(model="attache-demo", input="Hi")

    assert created.output_text == "Hello."
    assert await sdk.responses.retrieve(created.id) == created


async def test_stream_accumulator_ends_with_the_final_response(stage: Stage, sdk: openai.AsyncOpenAI) -> None:
    stage.model.play(text("Hello there, friend."))

    async with sdk.responses.stream(model="attache-demo", input="Hi") as stream:
        deltas = [event.delta async for event in stream if event.type == "response.output_text.delta"]
        final = await stream.get_final_response()

    assert "".join(deltas) == final.output_text == "Hello there, friend."
    assert (await sdk.responses.retrieve(final.id)).output_text == final.output_text


async def test_stream_accumulator_reads_an_mcp_turn(stage: Stage, sdk: openai.AsyncOpenAI) -> None:
    stage.model.play(function_calls(call("echo", {"text": "hi"})), text("Echoed."))

    async with sdk.responses.stream(
        model="attache-demo",
        input="Echo",
        tools=[stage.mcp_tool()],  # type: ignore[list-item]  # a plain dict
    ) as stream:
        async for _ in stream:
            pass
        final = await stream.get_final_response()

    assert [item.type for item in final.output] == ["mcp_list_tools", "mcp_call", "message"]
    assert final.output_text == "Echoed."


async def test_function_tool_is_answered_in_a_continuation(stage: Stage, sdk: openai.AsyncOpenAI) -> None:
    stage.model.play(function_calls(call("get_forecast", {"city": "Oslo"})), text("Snow in Oslo."))

    first = await sdk.responses.create(model="attache-demo", input="Weather in Oslo?", tools=[FORECAST])
    (called,) = first.output
    assert called.type == "function_call"
    second = await sdk.responses.create(
        model="attache-demo",
        previous_response_id=first.id,
        input=[{"type": "function_call_output", "call_id": called.call_id, "output": "snow"}],
        tools=[FORECAST],
    )

    assert second.output_text == "Snow in Oslo."


async def test_output_appended_to_input_is_accepted_with_store_left_on(stage: Stage, sdk: openai.AsyncOpenAI) -> None:
    stage.model.play(function_calls(call("get_forecast", {"city": "Oslo"})), text("Snow."))
    conversation: Any = [{"role": "user", "content": "Weather in Oslo?"}]

    first = await sdk.responses.create(model="attache-demo", input=conversation, tools=[FORECAST])
    conversation += first.output
    for item in first.output:
        if item.type == "function_call":
            conversation.append({"type": "function_call_output", "call_id": item.call_id, "output": "snow"})
    second = await sdk.responses.create(model="attache-demo", input=conversation, tools=[FORECAST])

    assert second.output_text == "Snow."


async def test_structured_output_is_parsed(stage: Stage, sdk: openai.AsyncOpenAI) -> None:
    stage.model.play(text('{"city": "Oslo", "sky": "snow"}'))

    parsed = await sdk.responses.parse(model="attache-demo", input="Weather in Oslo?", text_format=Forecast)

    assert parsed.output_parsed == SNOW
    (asked,) = stage.model.asked
    assert (asked["text"]["format"]["name"], asked["text"]["format"]["strict"]) == ("Forecast", True)


async def test_errors_are_the_sdks_own_exceptions(stage: Stage, sdk: openai.AsyncOpenAI) -> None:
    stage.model.play(
        http_error(429, {"error": {"message": "Slow down.", "type": "requests", "code": "rate_limit_exceeded"}})
    )

    with pytest.raises(openai.RateLimitError):
        await sdk.responses.create(model="attache-demo", input="Hi")
    with pytest.raises(openai.NotFoundError):
        await sdk.responses.retrieve("resp_unknown")
    with pytest.raises(openai.BadRequestError) as refused:
        await sdk.responses.create(model="attache-demo", input="Hi", previous_response_id="resp_unknown")
    assert (refused.value.code, refused.value.param) == ("previous_response_not_found", "previous_response_id")


async def test_models_are_listed_by_the_upstream(sdk: openai.AsyncOpenAI) -> None:
    assert [model.id async for model in sdk.models.list()]


async def test_parallel_calls_of_parsed_tools_are_answered_with_the_output_sent_back(
    stage: Stage, sdk: openai.AsyncOpenAI
) -> None:
    stage.model.play(
        function_calls(call("GetForecast", {"city": "Oslo"}), call("GetForecast", {"city": "Rome"})), text("Snow, sun.")
    )
    tools: Any = [openai.pydantic_function_tool(GetForecast)]
    conversation: Any = [{"role": "user", "content": "Weather in Oslo and in Rome?"}]

    first = await sdk.responses.parse(model="attache-demo", input=conversation, tools=tools)
    calls = [item for item in first.output if item.type == "function_call"]
    conversation += first.output
    conversation += [
        {"type": "function_call_output", "call_id": called.call_id, "output": called.arguments} for called in calls
    ]
    second = await sdk.responses.parse(model="attache-demo", input=conversation, tools=tools)

    assert [called.parsed_arguments for called in calls] == [GetForecast(city="Oslo"), GetForecast(city="Rome")]
    assert second.output_text == "Snow, sun."
    told = stage.model.asked[1]["input"]
    assert [item["call_id"] for item in told[1:]] == [calls[0].call_id, calls[1].call_id] * 2


class GetForecast(BaseModel):
    """The arguments of a function tool."""

    city: str


async def test_conversation_goes_on_from_a_previous_response(stage: Stage, sdk: openai.AsyncOpenAI) -> None:
    stage.model.play(text("Hello, Ada."), text("Ada."))

    first = await sdk.responses.create(model="attache-demo", input="I am Ada.", store=True)
    second = await sdk.responses.create(model="attache-demo", input="Who am I?", previous_response_id=first.id)

    assert (second.previous_response_id, second.output_text) == (first.id, "Ada.")
    assert len(stage.model.asked[1]["input"]) == 3


async def test_reasoning_and_usage_are_read(stage: Stage, sdk: openai.AsyncOpenAI) -> None:
    stage.model.play(reasoning_then("They greet me.", "Hello."))

    response = await sdk.responses.create(model="attache-demo", input="Hi", reasoning={"effort": "low"})

    thought, _ = response.output
    assert thought.type == "reasoning"
    assert [part.text for part in thought.content or []] == ["They greet me."]
    assert response.reasoning is not None
    assert response.reasoning.effort == "low"
    assert response.usage is not None
    assert response.usage.total_tokens == response.usage.input_tokens + response.usage.output_tokens


async def test_incomplete_response_says_why(stage: Stage, sdk: openai.AsyncOpenAI) -> None:
    stage.model.play(incomplete("max_output_tokens", text("Once upon a")))

    response = await sdk.responses.create(model="attache-demo", input="Tell", max_output_tokens=16)

    assert (response.status, response.output_text) == ("incomplete", "Once upon a")
    assert response.incomplete_details is not None
    assert response.incomplete_details.reason == "max_output_tokens"


async def test_extra_body_reaches_the_model_server(stage: Stage, sdk: openai.AsyncOpenAI) -> None:
    stage.model.play(text("Hi."))

    await sdk.responses.create(
        model="attache-demo", input="Hi", extra_body={"seed": 7, "chat_template_kwargs": {"enable_thinking": False}}
    )

    (asked,) = stage.model.asked
    assert (asked["seed"], asked["chat_template_kwargs"]) == (7, {"enable_thinking": False})


async def test_raw_response_has_the_request_id(stage: Stage, sdk: openai.AsyncOpenAI) -> None:
    stage.model.play(text("Raw."), text("Parsed."), text("Streamed."))

    raw = await sdk.responses.with_raw_response.create(model="attache-demo", input="Hi")
    parsed = await sdk.responses.create(model="attache-demo", input="Hi")
    async with sdk.responses.with_streaming_response.create(model="attache-demo", input="Hi") as streamed:
        body: Any = await streamed.json()

    assert raw.parse().output_text == "Raw."
    ids = [raw.headers["x-request-id"], parsed._request_id, streamed.headers["x-request-id"]]
    assert all(ids)
    assert len(set(ids)) == 3
    assert body["output"][0]["content"][0]["text"] == "Streamed."


async def test_synchronous_client_creates_streams_and_retrieves(stage: Stage) -> None:
    stage.model.play(text("Hello."), text("Hello again."))

    created, deltas, retrieved = await asyncio.to_thread(used_synchronously, f"{stage.gateway.url}/v1")

    assert created.output_text == "Hello."
    assert "".join(deltas) == "Hello again."
    assert retrieved == created


def used_synchronously(url: str) -> tuple[Response, list[str], Response]:
    with openai.OpenAI(base_url=url, api_key="unused", max_retries=0, timeout=WAIT_S) as client:
        created = client.responses.create(model="attache-demo", input="Hi")
        with client.responses.stream(model="attache-demo", input="Hi") as stream:
            deltas = [event.delta for event in stream if event.type == "response.output_text.delta"]
        return created, deltas, client.responses.retrieve(created.id)
