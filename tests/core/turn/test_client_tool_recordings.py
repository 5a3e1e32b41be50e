"""OpenAI's recordings of client-executed tools, asked of a server that knows functions only.

What OpenAI sent is turned into what such a server would have sent: its calls as calls of the functions that it was
told of. What the client sees then is what OpenAI sent, event by event.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from typing import Any

import pytest

from attache_core.events.event import Event
from attache_core.json_codec import Json, decode, encode
from attache_core.tools.builtin import builtin_tool_types
from attache_core.tools.mcp.servers import open_mcp_servers
from attache_core.tools.mcp.settings import McpSettings
from attache_core.turn.loop import LoopLimits, run_tool_loop
from attache_core.turn.round import run_round
from attache_core.types.turn import TurnRequest
from core.events.canonical_stream import check_stream
from core.events.recordings import Recorded, recorded
from core.turn.test_loop import Answer
from core.turn.test_openai_sequences import StreamedAnswer, comparable, compared_fields

STREAMED = [
    "custom_tools/codex-openai-https-custom-tool-gpt-5.6-streaming.yaml",
    "namespace_tools/codex-openai-https-namespace-tool-gpt-4o-streaming.yaml",
    "tool_search/tool-search-openai-reference-gpt-5.6-streaming.yaml",
    "function_tools/codex-openai-https-function-tool-gpt-4o-streaming.yaml",
]
PLAIN = [
    "custom_tools/custom-tool-openai-reference-gpt-5.6-nonstreaming.yaml",
    "tool_search/tool-search-openai-reference-gpt-5.6-nonstreaming.yaml",
]


def answers(*paths: str) -> list[Any]:
    return [pytest.param(answer, id=answer.name) for path in paths for answer in recorded(path)]


def as_function_call(item: Json) -> Json:
    """An item as a server says it that knows functions only."""
    kind = item["type"]
    plain = {
        "id": item.get("id"),
        "type": "function_call",
        "status": item.get("status"),
        "call_id": item.get("call_id"),
    }
    if kind == "custom_tool_call":
        arguments = encode({"input": item["input"]}).decode() if item["input"] else ""
        return {**plain, "name": item["name"], "arguments": arguments}
    if kind == "tool_search_call":
        arguments = encode(item["arguments"]).decode() if item["arguments"] else ""
        return {**plain, "name": "tool_search", "arguments": arguments}
    if kind == "function_call" and "namespace" in item:
        return {**plain, "name": f"{item['namespace']}__{item['name']}", "arguments": item["arguments"]}
    return item


def as_function_events(payload: Json, first: set[str]) -> Iterator[Json]:
    """The same for an event of a stream; `first` remembers the inputs that have begun."""
    kind = payload["type"]
    arguments = "response.function_call_arguments"
    if kind == "response.custom_tool_call_input.delta":
        head = "" if payload["item_id"] in first else '{"input":"'
        first.add(payload["item_id"])
        yield {**payload, "type": f"{arguments}.delta", "delta": head + encode(payload["delta"]).decode()[1:-1]}
    elif kind == "response.custom_tool_call_input.done":
        whole = encode({"input": payload["input"]}).decode()
        yield {**payload, "type": f"{arguments}.delta", "delta": '"}'}
        yield {**payload, "type": f"{arguments}.done", "arguments": whole}
    elif "item" in payload:
        yield {**payload, "item": as_function_call(payload["item"])}
    elif "response" in payload:
        output = [as_function_call(item) for item in payload["response"]["output"]]
        yield {**payload, "response": {**payload["response"], "output": output}}
    else:
        yield payload


def function_stream(answer: Recorded) -> bytes:
    first: set[str] = set()
    events = [said for payload in answer.payloads for said in as_function_events(payload, first)]
    return b"".join(
        b"event: %b\ndata: %b\n\n" % (said["type"].encode(), encode({**said, "sequence_number": number}))
        for number, said in enumerate(events)
    )


class Server:
    """Answers with one stream or one body, and remembers what it was asked."""

    def __init__(self, answer: StreamedAnswer | Answer) -> None:
        self.asked: list[Json] = []
        self._answer = answer

    def __call__(self, turn: TurnRequest) -> AsyncGenerator[Event, None]:
        self.asked.append(turn.body)
        return run_round(turn, self._send)

    async def _send(self, turn: TurnRequest) -> Any:
        return self._answer


async def looped(answer: Recorded, server: Server) -> list[Event]:
    body = {name: value for name, value in answer.request.items() if name != "type"}
    turn = TurnRequest({"model": "m", **body})
    turn = turn.with_facts(history_items=0, stored=turn.store)
    async with open_mcp_servers(McpSettings()) as mcp:
        return [event async for event in run_tool_loop(turn, server, builtin_tool_types(mcp), LoopLimits())]


def assert_knows_functions_only(asked: Json) -> None:
    assert {tool["type"] for tool in asked.get("tools", ())} <= {"function"}
    items = asked["input"] if isinstance(asked["input"], list) else []
    assert {item.get("type") for item in items} <= {"message", "function_call", "function_call_output"}


@pytest.mark.parametrize("answer", answers(*STREAMED))
async def test_recorded_call_comes_out_event_by_event_as_openai_sent_it(answer: Recorded) -> None:
    server = Server(StreamedAnswer(function_stream(answer)))

    events = await looped(answer, server)

    check_stream(events)
    assert_knows_functions_only(server.asked[0])
    sent = answer.payloads
    names = compared_fields(sent[0]["response"], answer.request)
    assert comparable([event.data for event in events], names) == comparable(sent, names)


@pytest.mark.parametrize("answer", answers(*PLAIN))
async def test_recorded_call_that_is_not_streamed_is_the_same_item(answer: Recorded) -> None:
    assert answer.body is not None
    output = [as_function_call(item) for item in answer.body["output"]]
    server = Server(Answer({**answer.body, "output": output}))

    [end] = await looped(answer, server)

    assert_knows_functions_only(server.asked[0])
    assert decode(encode(unidentified(end.data["response"]["output"]))) == unidentified(answer.body["output"])


def unidentified(items: list[Json]) -> list[Json]:
    return [{name: value for name, value in item.items() if name != "id"} for item in items]


async def test_loaded_tool_of_a_turn_without_tools_is_told_to_the_model_and_shown_as_openai_shows_it() -> None:
    [_, loaded, _] = recorded(PLAIN[1])
    assert loaded.body is not None
    server = Server(Answer(loaded.body))

    [end] = await looped(loaded, server)

    shown = [{**tool, "output_schema": None} for tool in end.data["response"]["tools"]]
    assert shown == loaded.body["tools"]
    [told] = server.asked[0]["tools"]
    assert (told["name"], told["strict"], "defer_loading" in told) == ("get_weather", True, False)


async def test_deferred_tool_is_shown_as_declared_and_not_told_to_the_model() -> None:
    [search, *_] = recorded(PLAIN[1])
    assert search.body is not None
    server = Server(Answer({**search.body, "output": []}))

    [end] = await looped(search, server)

    shown = {tool["type"]: tool for tool in end.data["response"]["tools"]}
    assert shown["function"]["defer_loading"] is True
    assert [tool["name"] for tool in server.asked[0]["tools"]] == ["tool_search"]
