"""The same script, over the Responses wire and over the chat wire, gives a client the same answer."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attache_core.events.chat_completions import ChatCompletionsReader
from attache_core.events.dialects import Dialect, dialect_for
from attache_core.events.sse import SseDecoder
from attache_core.events.text_done import SaidEvent
from attache_core.json_codec import Json
from attache_core.testing.model_script import (
    FunctionCall,
    Message,
    Reasoning,
    Reply,
    Said,
    call,
    function_calls,
    incomplete,
    reasoning_then,
    says,
    text,
    with_usage,
)
from attache_core.testing.model_wire import wire_for
from attache_core.testing.model_wire.chat_completions import ChatCompletionsWire
from core.events.pipeline import accumulated, sequenced

SCRIPTS = {
    "text": text("Hello there, how are you?"),
    "reasoning": reasoning_then("They greet me.", "Hello."),
    "one call": function_calls(call("look", {"at": "the sky"}, call_id="call_1")),
    "calls": function_calls(call("look", {"x": 1}, call_id="call_1"), call("look", {"x": 2}, call_id="call_2")),
    "text and call": says("Looking.", call("look", {"x": 1}, call_id="call_1")),
    "structured": text('{"city": "Oslo", "degrees": -3}', deltas=9),
    "out of tokens": incomplete("max_output_tokens", text("This goes on and")),
    "filtered": incomplete("content_filter", text("This is")),
    "nothing": says(),
}


def said_by(reply: Reply) -> Said:
    assert isinstance(reply.content, Said)
    return reply.content


def over_responses(said: Said, stream: bool) -> list[SaidEvent]:
    wire = wire_for("openai" if not _thinks(said) else "vllm", {"input": "x"}, said)
    dialect = dialect_for("auto")
    return _read(dialect, wire.frames()) if stream else list(dialect.read_response(wire.response()))


def over_chat(said: Said, stream: bool) -> list[SaidEvent]:
    request: Json = {"messages": [], "stream_options": {"include_usage": True}}
    wire, reader = ChatCompletionsWire(request, said), ChatCompletionsReader()
    return _read(reader, wire.frames()) if stream else list(reader.read_response(wire.response()))


def _thinks(said: Said) -> bool:
    """OpenAI's own wire has summaries of reasoning only."""
    return any(isinstance(item, Reasoning) for item in said.items)


def _read(reader: Dialect | ChatCompletionsReader, frames: list[bytes]) -> list[SaidEvent]:
    decoder = SseDecoder()
    return [said for frame in decoder.feed(b"".join(frames)) for said in reader.read_data(frame.data)]


def client_sees(said: list[SaidEvent], *, streamed: bool) -> list[tuple[str, Json]]:
    """Types and payloads of all events when streamed, else of the last one; without what no two answers share."""
    events = [(event.type, event.data) for event in sequenced(accumulated(said))]
    if streamed:
        return [(kind, {**data, "response": None} if kind == "response.created" else data) for kind, data in events]
    return events[-1:]


@pytest.mark.parametrize("reply", SCRIPTS.values(), ids=SCRIPTS.keys())
@pytest.mark.parametrize("stream", [False, True], ids=["json", "sse"])
def test_client_sees_the_same_over_both_wires(reply: Reply, stream: bool) -> None:
    said = said_by(with_usage(9, 5, reply))
    chat, responses = (client_sees(wire(said, stream), streamed=stream) for wire in (over_chat, over_responses))

    assert _comparable(chat) == _comparable(responses)


def _comparable(events: list[tuple[str, Json]]) -> list[tuple[str, Json]]:
    """Without what the scripted servers count differently: reasoning tokens, and how arguments are spaced."""
    for _, data in events:
        usage = (data.get("response") or {}).get("usage")
        if usage:
            usage["output_tokens_details"] = None
    return events


pieces = st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=4).map(tuple)
calls = st.builds(call, st.just("f"), st.dictionaries(st.text(max_size=4), st.integers(), max_size=2))


@settings(max_examples=100)
@given(thought=pieces | st.none(), text=pieces | st.none(), calls=st.lists(calls, max_size=3))
def test_any_answer_has_the_same_items_streamed_and_plain(
    thought: tuple[str, ...] | None, text: tuple[str, ...] | None, calls: list[FunctionCall]
) -> None:
    said = Said((*([Reasoning(thought)] if thought else ()), *([Message(text)] if text else ()), *calls))

    streamed, plain = (client_sees(over_chat(said, stream), streamed=False) for stream in (True, False))

    assert _without_numbers(streamed) == _without_numbers(plain)


def _without_numbers(events: list[tuple[str, Json]]) -> list[list[Json]]:
    return [
        [
            {name: value for name, value in item.items() if name not in ("id", "call_id")}
            for item in data["response"]["output"]
        ]
        for _, data in events
    ]
