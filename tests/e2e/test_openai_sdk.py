"""The official OpenAI SDK cannot tell the gateway from OpenAI."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
import pytest_asyncio
from pydantic import BaseModel

from attache_core.testing.model_script import call, function_calls, http_error, text
from e2e.stage import WAIT_S, Stage

FORECAST: Any = {
    "type": "function",
    "name": "get_forecast",
    "description": "The forecast for a city",
    "strict": True,
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
}


@pytest_asyncio.fixture(loop_scope="session")
async def sdk(stage: Stage) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(
        base_url=f"{stage.gateway.url}/v1", api_key="unused", max_retries=0, timeout=4 * WAIT_S
    ) as client:
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


class Forecast(BaseModel):
    city: str
    sky: str


async def test_structured_output_is_parsed(stage: Stage, sdk: openai.AsyncOpenAI) -> None:
    stage.model.play(text('{"city": "Oslo", "sky": "snow"}'))

    parsed = await sdk.responses.parse(model="attache-demo", input="Weather in Oslo?", text_format=Forecast)

    assert parsed.output_parsed == Forecast(city="Oslo", sky="snow")


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
