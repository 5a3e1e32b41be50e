"""What goes wrong is the exception of the official OpenAI SDK that a client of the API expects, and is retried."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
import pytest_asyncio

from attache_core.json_codec import Json
from attache_core.testing.model_script import Reply, call, function_calls, garbage, http_error, stalls_after, text
from e2e.sdk_client import open_sdk
from e2e.stage import Stage

SLOW_DOWN: Json = {"error": {"message": "Slow down.", "type": "requests", "param": None, "code": "rate_limit_exceeded"}}


@pytest_asyncio.fixture(loop_scope="session")
async def sdk(stage: Stage) -> AsyncIterator[openai.AsyncOpenAI]:
    async with open_sdk(stage) as client:
        yield client


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"temperature": "hot"}, ("temperature", "invalid_type")),
        ({"previous_response_id": "resp_unknown"}, ("previous_response_id", "previous_response_not_found")),
        ({"input": [{"type": "bogus"}]}, ("input[0]", "invalid_value")),
    ],
)
async def test_bad_request_names_its_parameter(
    stage: Stage, sdk: openai.AsyncOpenAI, stream: bool, wrong: Any, told: tuple[str, str]
) -> None:
    request: Any = {"model": "attache-demo", "input": "Hi", "stream": stream, **wrong}

    with pytest.raises(openai.BadRequestError) as refused:
        await sdk.responses.create(**request)

    assert (refused.value.status_code, refused.value.type) == (400, "invalid_request_error")
    assert (refused.value.param, refused.value.code) == told
    assert refused.value.request_id
    assert stage.model.asked == []


async def test_unknown_response_is_not_found(sdk: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.NotFoundError):
        await sdk.responses.retrieve("resp_unknown")


async def test_rate_limit_is_retried_when_the_model_server_says(
    stage: Stage, sdk: openai.AsyncOpenAI, stream: bool
) -> None:
    stage.model.play(http_error(429, SLOW_DOWN, {"retry-after": "0.05"}), text("Now."))

    answer: Any = await sdk.with_options(max_retries=1).responses.create(
        model="attache-demo", input="Hi", stream=stream
    )
    if stream:
        answer = [event async for event in answer][-1].response

    assert answer.output_text == "Now."
    assert len(stage.model.asked) == 2


async def test_rate_limit_that_stays_is_raised_with_its_code_and_retry_after(
    stage: Stage, sdk: openai.AsyncOpenAI, stream: bool
) -> None:
    stage.model.play(http_error(429, SLOW_DOWN, {"retry-after": "7"}))

    with pytest.raises(openai.RateLimitError) as refused:
        await sdk.responses.create(model="attache-demo", input="Hi", stream=stream)

    assert (refused.value.code, refused.value.response.headers["retry-after"]) == ("rate_limit_exceeded", "7")


@pytest.mark.parametrize(
    "reply", [garbage(), http_error(500), http_error(503)], ids=["garbage", "internal error", "unavailable"]
)
async def test_model_server_that_fails_is_a_server_error(
    stage: Stage, sdk: openai.AsyncOpenAI, stream: bool, reply: Reply
) -> None:
    stage.model.play(reply)

    with pytest.raises(openai.InternalServerError) as failed:
        await sdk.responses.create(model="attache-demo", input="Hi", stream=stream)

    assert failed.value.status_code >= 500


async def test_server_error_is_retried(stage: Stage, sdk: openai.AsyncOpenAI) -> None:
    stage.model.play(http_error(500, headers={"retry-after": "0.05"}), text("Now."))

    answer = await sdk.with_options(max_retries=1).responses.create(model="attache-demo", input="Hi")

    assert answer.output_text == "Now."


async def test_turn_that_failed_after_a_tool_ran_is_not_retried(stage: Stage, sdk: openai.AsyncOpenAI) -> None:
    stage.model.play(function_calls(call("echo", {"text": "a"})), http_error(503, headers={"retry-after-ms": "10"}))
    tool: Any = stage.mcp_tool()

    with pytest.raises(openai.InternalServerError) as failed:
        await sdk.with_options(max_retries=2).responses.create(model="attache-demo", input="Hi", tools=[tool])

    assert failed.value.response.headers["x-should-retry"] == "false"
    assert len(stage.model.asked) == 2


async def test_client_that_waits_no_longer_has_a_timeout_and_leaves_nothing_running(
    stage: Stage, sdk: openai.AsyncOpenAI
) -> None:
    stage.model.play(stalls_after(None))

    with pytest.raises(openai.APITimeoutError):
        await sdk.with_options(timeout=0.3).responses.create(model="attache-demo", input="Hi")

    await stage.wait_until_idle()
