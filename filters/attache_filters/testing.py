"""Runs filters without Envoy, and checks that one keeps what the host and its neighbours rely on.

For the tests of whoever writes a filter; it needs no test framework. `below` is a plain function: `answering` and its
siblings make the usual ones. Filters run in the chain that the host runs, so what holds here holds in production.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from attache_core.errors import AttacheError, UpstreamError
from attache_core.events.event import Event
from attache_core.json_codec import Json
from attache_core.turn.below import Below
from attache_core.types.turn import TurnRequest
from attache_filters.extproc.chain import Chain
from attache_filters.extproc.codec import decode_turn, encode_answer
from attache_filters.extproc.guard import guarded
from attache_filters.extproc.scope import Scope
from attache_filters.sdk.filter import Filter, TurnFilter
from attache_filters.sdk.http import HttpBelow, HttpRequest, HttpResponse, one_chunk

RESPONSES_PATH = "/v1/responses"

_SHARED_BY_STREAMS = frozenset({"output", "status", "error", "incomplete_details", "usage"})


@dataclass(slots=True)
class Calls:
    """A `below` that remembers what it was asked; call it with a turn.

    Attributes:
        answers: what the calls get, in order; the last one serves all further calls. Each is the events to yield, or
            the error to raise before any.
        turns: what it was called with.
    """

    answers: Sequence[Sequence[Event] | AttacheError]
    turns: list[TurnRequest] = field(default_factory=list)

    def __call__(self, turn: TurnRequest) -> AsyncGenerator[Event, None]:
        answer = self.answers[min(len(self.turns), len(self.answers) - 1)]
        self.turns.append(turn)
        return _play(answer)


def answering(*answers: Sequence[Event] | AttacheError) -> Calls:
    """A `below` that gives these answers, one per call."""
    return Calls(answers)


def text_events(text: str, *, response_id: str = "resp_below") -> list[Event]:
    """The canonical stream of a response that is one message."""
    part: Json = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    item: Json = {"id": "msg_below", "type": "message", "status": "completed", "role": "assistant", "content": [part]}
    place: Json = {"item_id": item["id"], "output_index": 0, "content_index": 0}
    begun = {**item, "status": "in_progress", "content": []}
    empty = {**part, "text": ""}
    response: Json = {"id": response_id, "object": "response", "status": "in_progress", "output": []}
    payloads: list[Json] = [
        {"type": "response.created", "response": response},
        {"type": "response.in_progress", "response": response},
        {"type": "response.output_item.added", "output_index": 0, "item": begun},
        {"type": "response.content_part.added", **place, "part": empty},
        {"type": "response.output_text.delta", **place, "delta": text, "logprobs": []},
        {"type": "response.output_text.done", **place, "text": text, "logprobs": []},
        {"type": "response.content_part.done", **place, "part": part},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {**response, "status": "completed", "output": [item]}},
    ]
    return [Event(payload["type"], {**payload, "sequence_number": n}) for n, payload in enumerate(payloads)]


async def run_turn(filters: Sequence[Filter[Any]] | Filter[Any], turn: TurnRequest, below: Below) -> list[Event]:
    """All events that `filters`, outermost first, answer `turn` with.

    Raises:
        AttacheError: what they raise before the first event.
    """
    async with Scope() as scope:
        chain = Chain(bottom=_as_http(below, scope), scope=scope, turn_bottom=below)
        run = chain.turns(_sequence(filters), method="POST", path=RESPONSES_PATH)
        return [event async for event in scope.own(run(turn))]


async def run_http(
    filters: Sequence[Filter[Any]] | Filter[Any], request: HttpRequest, below: HttpBelow
) -> tuple[HttpResponse, bytes]:
    """What `filters`, outermost first, answer `request` with, and the whole body of that; errors are responses."""
    async with Scope() as scope:
        response = await Chain(bottom=below, scope=scope).answer(_sequence(filters), request)
        body = b"".join([chunk async for chunk in scope.own(response.body)])
    return HttpResponse(response.status, response.headers, one_chunk(body)), body


def http_answering(status: int, headers: Mapping[str, str], body: bytes) -> HttpBelow:
    """An HTTP `below` that always gives this response."""

    async def below(_: HttpRequest) -> HttpResponse:
        return HttpResponse(status, headers, one_chunk(body))

    return below


async def check_turn_filter(
    turn_filter: TurnFilter[Any], turn: TurnRequest | None = None, answer: Sequence[Event] | None = None
) -> None:
    """The contract of a `TurnFilter`: raises AssertionError, with what is wrong, unless the filter keeps it.

    Valid events below give valid events above; streamed or not, the final response is the same; an error before the
    first event passes. A filter that answers by itself whatever is below passes too.

    Args:
        turn: what to ask, by default a plain text turn.
        answer: what is below, by default a plain text answer.
    """
    asked = turn or TurnRequest({"model": "test", "input": "Say something."})
    events = list(answer or text_events("Something."))
    streamed = await run_turn(turn_filter, asked.with_body(stream=True), answering(events))
    _check_stream(streamed)
    plain = await run_turn(turn_filter, asked.with_body(stream=False), answering([events[-1]]))
    _check_end(plain)
    first, second = streamed[-1].data["response"], plain[-1].data["response"]
    for name in sorted(_SHARED_BY_STREAMS):
        assert first.get(name) == second.get(name), f"{name!r} of the response depends on whether it is streamed"
    await _check_error_passes(turn_filter, asked)


async def _check_error_passes(turn_filter: TurnFilter[Any], asked: TurnRequest) -> None:
    below = answering(UpstreamError("The server is gone.", code="gone"))
    try:
        events = await run_turn(turn_filter, asked, below)
    except AttacheError:
        return
    assert not below.turns or events[-1].is_terminal, "an error below was swallowed without a terminal event"


def _check_stream(events: Sequence[Event]) -> None:
    _check_end(events)
    assert events[0].type == "response.created", f"the stream begins with {events[0].type}"
    numbers = [event.data.get("sequence_number") for event in events]
    assert numbers == list(range(len(events))), f"the sequence numbers are {numbers}"
    open_items: set[int] = set()
    for event in events:
        assert event.data.get("type") == event.type, f"the payload of {event.type} has another type"
        index = event.data.get("output_index")
        if event.type == "response.output_item.added":
            open_items.add(event.data["output_index"])
        elif event.type == "response.output_item.done":
            assert index in open_items, f"item {index} is done and was not open"
            open_items.discard(event.data["output_index"])
        elif index is not None:
            assert index in open_items, f"{event.type} belongs to item {index}, which is not open"
    assert not open_items, f"the items {sorted(open_items)} are never done"


def _check_end(events: Sequence[Event]) -> None:
    ends = [event.type for event in events if event.is_terminal]
    assert len(ends) == 1, f"there must be one terminal event, not {ends}"
    assert events[-1].is_terminal, f"{events[-1].type} follows the terminal event"
    assert isinstance(events[-1].data.get("response"), dict), "the terminal event has no response"


async def _play(answer: Sequence[Event] | AttacheError) -> AsyncGenerator[Event, None]:
    if isinstance(answer, AttacheError):
        raise answer
    for event in answer:
        yield event


def _as_http(below: Below, scope: Scope) -> HttpBelow:
    """`below`, as an `HttpFilter` right above it calls it."""

    async def send(request: HttpRequest) -> HttpResponse:
        turn = decode_turn(request)
        return await encode_answer(scope.own(guarded("below", lambda _: below(turn))), stream=turn.stream)

    return send


def _sequence(filters: Sequence[Filter[Any]] | Filter[Any]) -> Sequence[Filter[Any]]:
    return (filters,) if isinstance(filters, Filter) else tuple(filters)
