"""OpenAI's own streams, as the answer of an inference server: what comes out is what OpenAI sent, event by event.

Differences are those in the tables here, and no others.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pytest
from openai.types.responses import Response

from attache_core.errors import UpstreamError
from attache_core.events.event import TERMINAL_TYPES, Event
from attache_core.json_codec import Json, encode
from attache_core.tools.builtin import builtin_tool_types
from attache_core.tools.mcp.servers import McpServers, open_mcp_servers
from attache_core.tools.mcp.settings import McpSettings
from attache_core.turn.below import Below
from attache_core.turn.loop import LoopLimits, run_tool_loop
from attache_core.turn.round import run_round
from attache_core.types.turn import TurnRequest
from core.events.canonical_stream import check_stream
from core.events.recordings import Recorded, all_recorded

RECORDED: Final = [pytest.param(answer, id=answer.name) for answer in all_recorded(stream=True, openai=True)]

NOT_REPEATED: Final = {"error": "response.failed follows and says the same; the openai package raises at this event"}
"""Event types of OpenAI's that are not shown, and why."""

NOT_COMPARED: Final = {
    "created_at": "the clock's",
    "completed_at": "the clock's, null or not is checked with the status",
    "usage": "compared as a sum elsewhere; recordings of different months have different counts in it",
    "tools": "the turns here declare none, because hosted tools are refused",
    "tool_choice": "may name one of them",
    "conversation": "the turns here belong to none",
}
"""Fields of a response whose values are not compared, and why."""

SERVICE_DEFAULTS: Final = {
    "prompt_cache_retention": "null: nothing is known of a cache",
    "service_tier": "auto, also at the end: nothing is known of tiers",
    "reasoning": "nulls: the model's default effort is not known",
    "top_p": "the API's documented default, not that of one of OpenAI's models",
}
"""Fields of a response in which OpenAI shows what its service chose where the request does not say, and what we show;
they are compared where the request says something."""

YOUNGER: Final = {*Response.model_fields, "frequency_penalty", "presence_penalty", "tool_usage"}
"""Fields of a response that a recording may be too old to have, and ours may have; the last three are in the younger
recordings and not in the package."""


@dataclass(frozen=True, slots=True)
class StreamedAnswer:
    stream: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "text/event-stream; charset=utf-8"})

    @property
    def body(self) -> AsyncIterator[bytes]:
        async def whole() -> AsyncIterator[bytes]:
            yield self.stream

        return whole()


def answering(stream: bytes) -> Below:
    """One inference round that is answered with these bytes."""

    async def send(turn: TurnRequest) -> StreamedAnswer:
        return StreamedAnswer(stream)

    def below(turn: TurnRequest) -> AsyncGenerator[Event, None]:
        return run_round(turn, send)

    return below


@pytest.fixture
async def mcp() -> AsyncIterator[McpServers]:
    async with open_mcp_servers(McpSettings()) as servers:
        yield servers


def turn_of(request: Json) -> TurnRequest:
    left_out = ("tools", "tool_choice", "conversation", "type")
    body = {name: value for name, value in request.items() if name not in left_out}
    turn = TurnRequest({"model": "m", "input": "Hi", **body, "stream": True})
    return turn.with_facts(history_items=0, stored=turn.store)


async def both_ways(turn: TurnRequest, stream: bytes, mcp: McpServers) -> list[list[Event]]:
    """What a round makes of it, and what the tool loop makes of that."""
    below = answering(stream)
    looped = run_tool_loop(turn, below, builtin_tool_types(mcp), LoopLimits())
    return [[event async for event in below(turn)], [event async for event in looped]]


@pytest.mark.parametrize("answer", RECORDED)
async def test_recorded_stream_comes_out_event_by_event_as_openai_sent_it(answer: Recorded, mcp: McpServers) -> None:
    assert answer.stream is not None
    sent = [payload for payload in answer.payloads if payload["type"] not in NOT_REPEATED]
    names = compared_fields(sent[0]["response"], answer.request)
    for events in await both_ways(turn_of(answer.request), answer.stream, mcp):
        check_stream(events)
        assert comparable([event.data for event in events], names) == comparable(sent, names)
        for event, payload in zip(events, sent, strict=True):
            if "response" in payload:
                check_response_fields(event.data["response"], payload["response"])


def check_response_fields(ours: Json, theirs: Json) -> None:
    missing = theirs.keys() - ours.keys() - {"conversation"}
    more = ours.keys() - theirs.keys() - YOUNGER
    assert (missing, more) == (set(), set())
    assert (ours["completed_at"] is None) == (theirs["completed_at"] is None)
    assert (ours["usage"] is None) == (theirs["usage"] is None)


def compared_fields(recorded: Json, request: Json) -> set[str]:
    """The fields of a response that are compared."""
    return recorded.keys() - NOT_COMPARED.keys() - (SERVICE_DEFAULTS.keys() - request.keys())


def comparable(payloads: Sequence[Json], names: set[str]) -> list[Json]:
    """The payloads without what no two answers share, and with the ids in the order of their first use."""
    ids: dict[object, str] = {}
    shown = []
    for number, payload in enumerate(payloads):
        entry = {**payload, "sequence_number": number}
        if "response" in entry:
            entry["response"] = {name: entry["response"][name] for name in sorted(names)}
        shown.append(_comparable(entry, ids))
    return shown


def _comparable(value: Json, ids: dict[object, str]) -> Json:
    shown: Json = {}
    for name, inner in value.items():
        if name == "context":
            # Of `reasoning`, and younger than most recordings.
            continue
        if name in ("id", "item_id"):
            shown[name] = ids.setdefault(inner, f"id_{len(ids)}")
        elif name == "obfuscation":
            shown[name] = len(inner)
        elif name == "encrypted_content":
            # OpenAI encrypts anew whenever it says the same again.
            shown[name] = type(inner)
        elif isinstance(inner, dict):
            shown[name] = _comparable(inner, ids)
        elif isinstance(inner, list):
            shown[name] = [_comparable(entry, ids) if isinstance(entry, dict) else entry for entry in inner]
        else:
            shown[name] = inner
    return shown


# What is in no recording: built by the types of the openai package, in the order that the API documents.

LOGPROBS: Final = [
    {"token": token, "logprob": -0.5, "bytes": list(token.encode()), "top_logprobs": []} for token in ("No", ".")
]


def stream_of(parts: Sequence[tuple[Sequence[Json], Json]], item: Json) -> list[Json]:
    """A response of one message: each part with the events between its `added` and its `done`."""
    response = {"id": "resp_1", "object": "response", "status": "in_progress", "model": "m", "output": []}
    place = {"item_id": "msg_1", "output_index": 0}
    begun = {**item, "status": "in_progress", "content": []}
    events: list[Json] = [
        {"type": "response.created", "response": response},
        {"type": "response.in_progress", "response": response},
        {"type": "response.output_item.added", "item": begun, "output_index": 0},
    ]
    for index, (said, part) in enumerate(parts):
        here = {**place, "content_index": index}
        empty = {name: "" if name in ("text", "refusal") else [] for name in part if name != "type"}
        events.append({"type": "response.content_part.added", **here, "part": {"type": part["type"], **empty}})
        events += [{**event, **here} for event in said]
        events.append({"type": "response.content_part.done", **here, "part": part})
    events.append({"type": "response.output_item.done", "item": item, "output_index": 0})
    final = {**response, "status": "completed", "output": [item]}
    events.append({"type": "response.completed", "response": final})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def message_of(*parts: Json) -> Json:
    return {"id": "msg_1", "type": "message", "status": "completed", "content": list(parts), "role": "assistant"}


def refusal() -> list[Json]:
    part = {"type": "refusal", "refusal": "No."}
    deltas: list[Json] = [{"type": "response.refusal.delta", "delta": text} for text in ("No", ".")]
    return stream_of([([*deltas, {"type": "response.refusal.done", "refusal": "No."}], part)], message_of(part))


def logprobs() -> list[Json]:
    part = {"type": "output_text", "annotations": [], "logprobs": LOGPROBS, "text": "No."}
    deltas: list[Json] = [
        {"type": "response.output_text.delta", "delta": one["token"], "logprobs": [one]} for one in LOGPROBS
    ]
    done = {"type": "response.output_text.done", "text": "No.", "logprobs": LOGPROBS}
    return stream_of([([*deltas, done], part)], message_of(part))


def citations() -> list[Json]:
    cited = [
        {"type": "url_citation", "start_index": n, "end_index": n + 1, "url": f"https://{n}.example", "title": "t"}
        for n in range(2)
    ]
    part = {"type": "output_text", "annotations": cited, "logprobs": [], "text": "No."}
    said: list[Json] = [{"type": "response.output_text.delta", "delta": "No.", "logprobs": []}]
    for number, citation in enumerate(cited):
        kind = "response.output_text.annotation.added"
        said.append({"type": kind, "annotation": citation, "annotation_index": number})
    said.append({"type": "response.output_text.done", "text": "No.", "logprobs": []})
    return stream_of([(said, part)], message_of(part))


def text_and_refusal() -> list[Json]:
    text = {"type": "output_text", "annotations": [], "logprobs": [], "text": "Well: "}
    refused = {"type": "refusal", "refusal": "No."}
    said: list[Json] = [
        {"type": "response.output_text.delta", "delta": "Well: ", "logprobs": []},
        {"type": "response.output_text.done", "text": "Well: ", "logprobs": []},
    ]
    refusing: list[Json] = [
        {"type": "response.refusal.delta", "delta": "No."},
        {"type": "response.refusal.done", "refusal": "No."},
    ]
    return stream_of([(said, text), (refusing, refused)], message_of(text, refused))


@pytest.mark.parametrize("make", [refusal, logprobs, citations, text_and_refusal])
async def test_what_is_in_no_recording_comes_out_as_the_api_documents_it(make: object, mcp: McpServers) -> None:
    assert callable(make)
    sent: list[Json] = make()
    turn = turn_of({"stream_options": {"include_obfuscation": False}})
    for events in await both_ways(turn, b"".join(frames(sent)), mcp):
        check_stream(events)
        assert [without_response(event.data) for event in renamed(events)] == [without_response(one) for one in sent]
        assert events[-1].data["response"]["output"] == [
            {**sent[-1]["response"]["output"][0], "id": events[2].data["item"]["id"]}
        ]


def frames(payloads: Sequence[Json]) -> Iterator[bytes]:
    return (b"event: %b\ndata: %b\n\n" % (payload["type"].encode(), encode(payload)) for payload in payloads)


def without_response(payload: Json) -> Json:
    return {name: value for name, value in payload.items() if name != "response"}


def renamed(events: Sequence[Event]) -> list[Event]:
    """The events under the item id of the stream that was sent."""
    given = events[2].data["item"]["id"]
    assert given.startswith("msg_")
    shown = []
    for event in events:
        data = {**event.data, **({"item_id": "msg_1"} if event.data.get("item_id") == given else {})}
        if "item" in data:
            data["item"] = {**data["item"], "id": "msg_1"}
        shown.append(Event(event.type, data))
    return shown


async def test_log_probabilities_that_came_in_deltas_alone_are_whole_in_the_part(mcp: McpServers) -> None:
    said = [{"token": "√", "logprob": -0.5, "top_logprobs": [{"token": "é", "logprob": -1}]}]
    part = {"type": "output_text", "annotations": [], "logprobs": [], "text": "√"}
    delta = {"type": "response.output_text.delta", "delta": "√", "logprobs": said}
    sent = stream_of([([delta], part)], message_of(part))
    top = [{"token": "é", "logprob": -1, "bytes": [195, 169]}]
    whole = [{**said[0], "bytes": [226, 136, 154], "top_logprobs": top}]
    for events in await both_ways(turn_of({}), b"".join(frames(sent)), mcp):
        check_stream(events)
        assert [event.data["logprobs"] for event in events if "logprobs" in event.data] == [said, whole]
        assert events[-1].data["response"]["output"][0]["content"][0]["logprobs"] == whole


@pytest.mark.parametrize("answer", RECORDED)
async def test_recorded_stream_cut_off_after_any_event_is_an_error_or_ends_as_failed(
    answer: Recorded, mcp: McpServers
) -> None:
    ends = ("error", *TERMINAL_TYPES)
    whole = list(itertools.takewhile(lambda payload: payload["type"] not in ends, answer.payloads))
    turn = turn_of(answer.request)
    for count in range(0, len(whole), max(1, len(whole) // 12)):
        stream = b"".join(frames(whole[:count]))
        if count == 0:
            with pytest.raises(UpstreamError) as failed:
                await both_ways(turn, stream, mcp)
            assert failed.value.http_status == 502
            continue
        for events in await both_ways(turn, stream, mcp):
            check_stream(events)
            assert events[-1].type == "response.failed"
            assert {item.get("status", "incomplete") for item in events[-1].data["response"]["output"]} <= {
                "completed", "incomplete", "failed",
            }  # fmt: skip
