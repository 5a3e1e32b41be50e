"""The scripted server over the Chat Completions API: its shape is OpenAI's, and it refuses what is badly translated."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from attache_core.events.sse import SseDecoder
from attache_core.json_codec import Json, decode
from attache_core.testing.model_chat_rules import chat_refusal_of
from attache_core.testing.model_script import Said, call, incomplete, says, text, thinks
from attache_core.testing.model_server import running_model_server
from attache_core.testing.model_wire.chat_completions import ChatCompletionsWire

HI: Json = {"role": "user", "content": "Hi"}
TOOL: Json = {"type": "function", "function": {"name": "get_weather", "parameters": {"required": ["city"]}}}
CALLED: Json = {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "function": {"name": "f"}}]}
TOLD: Json = {"role": "tool", "tool_call_id": "a", "content": "sunny"}


def asking(*messages: Json, **fields: Any) -> Json:
    return {"model": "m", "messages": list(messages), **fields}


async def answer(body: Json) -> tuple[int, Json]:
    async with running_model_server() as server, httpx.AsyncClient(base_url=server.url) as client:
        response = await client.post("/v1/chat/completions", json=body)
        assert [request.body for request in server.requests] == [body]
        return response.status_code, response.json()


async def test_without_a_script_the_demo_asks_for_the_weather_and_quotes_the_tool() -> None:
    question = {"role": "user", "content": "Weather in Oslo?"}
    status, asked = await answer(asking(question, tools=[TOOL]))
    function = asked["choices"][0]["message"]["tool_calls"][0]["function"]
    assert (status, function) == (200, {"name": "get_weather", "arguments": '{"city": "Oslo"}'})

    _, told = await answer(asking(question, CALLED, TOLD, tools=[TOOL]))
    assert told["choices"][0]["message"] == {"role": "assistant", "content": "The tool says: sunny"}


async def test_request_that_is_no_chat_request_is_answered_400() -> None:
    status, body = await answer({"model": "m", "input": "Hi"})

    assert (status, body["error"]["param"], body["error"]["type"]) == (400, "input", "invalid_request_error")


@pytest.mark.parametrize("include_usage", [True, False])
def test_stream_is_of_chunks_and_ends_with_done(include_usage: bool) -> None:
    reply = says(thinks("Hm."), "Let me see.", call("f", {"x": 1}))
    request = asking(HI, stream=True, stream_options={"include_usage": include_usage})

    frames = SseDecoder().feed(b"".join(_wire(request, reply).frames()))
    chunks = [ChatCompletionChunk.model_validate(decode(frame.data), strict=True) for frame in frames[:-1]]

    assert (frames[-1].event, frames[-1].data) == (None, b"[DONE]")
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "tool_calls"
    assert [chunk.usage is not None for chunk in chunks][-1] is include_usage
    assert len({chunk.id for chunk in chunks}) == 1


def test_plain_answer_is_a_completion() -> None:
    completion = ChatCompletion.model_validate(
        _wire(asking(HI), incomplete("max_output_tokens", text("Hello"))).response()
    )

    assert (completion.choices[0].finish_reason, completion.choices[0].message.content) == ("length", "Hello")


REFUSED: list[tuple[Json, str]] = [
    (asking(HI, instructions="x"), "instructions"),
    (asking(HI, max_output_tokens=1), "max_output_tokens"),
    (asking(), "messages"),
    ({"model": "m"}, "messages"),
    (asking({"role": "developer", "content": "x"}), "messages[0].role"),
    (asking({"role": "user", "content": [{"type": "input_text", "text": "x"}]}), "messages[0].content"),
    (asking({"role": "user", "content": None}), "messages[0].content"),
    (asking({"role": "user", "content": [{"type": "text", "text": "x"}]}), "messages[0].content"),
    (asking({"role": "system", "content": "x"}, {"role": "system", "content": "y"}, HI), "messages[1].role"),
    (asking(HI, TOLD), "messages[1]"),
    (
        asking({**CALLED, "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": ""}}]}, TOLD),
        "messages[0].tool_calls",
    ),
    (asking(CALLED, HI), "messages[1]"),
    (asking(CALLED, TOLD, TOLD), "messages[2]"),
    (asking(HI, tool_choice="auto"), "tool_choice"),
    (asking(HI, tools=[{"type": "function", "name": "f"}]), "tools[0]"),
    (asking(HI, tools=[{"type": "function", "function": {"name": "a.b"}}]), "tools[0]"),
]


@pytest.mark.parametrize(("body", "param"), REFUSED)
def test_what_no_chat_server_takes_is_refused(body: Json, param: str) -> None:
    refusal = chat_refusal_of(body)

    assert refusal is not None
    assert refusal.param == param


def test_whole_round_of_calls_is_accepted() -> None:
    assert chat_refusal_of(asking(HI, CALLED, TOLD, HI, tools=[TOOL], tool_choice="auto")) is None


def _wire(request: Json, reply: Any) -> ChatCompletionsWire:
    assert isinstance(reply.content, Said)
    return ChatCompletionsWire(request, reply.content)
