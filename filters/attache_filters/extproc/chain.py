"""Runs a segment's filters nested in one another, over whatever carries a request below them.

Neighbouring `TurnFilter`s pass objects; between turns and HTTP stands the codec, as it would between two segments, or
an `InferenceFilter`, which does that itself.
Every filter gets a guarded `below`, so whether its neighbour is in this process or behind Envoy makes no difference:
to a `TurnFilter` errors are exceptions or terminal events; to the others, which have HTTP below, they are responses.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from attache_core.errors import AttacheError
from attache_core.events.event import Event
from attache_core.events.event_stream import Batch, EventStream, batched, batches, later
from attache_core.turn.below import Below
from attache_core.types.turn import RESPONSE_HEADER_PREFIX, TurnRequest, Unattended
from attache_filters.extproc.codec import decode_answer, decode_turn, encode_answer, encode_error, encode_turn
from attache_filters.extproc.guard import Check, as_attache_error, guarded, unchecked
from attache_filters.extproc.headers import EVENT_STREAM_TYPE, JSON_TYPE
from attache_filters.extproc.round_report import ReportedEvents, RoundReport
from attache_filters.extproc.scope import Scope
from attache_filters.extproc.stream_end import StreamEndedError
from attache_filters.sdk.filter import Filter, HttpFilter, InferenceFilter, RequestFilter, TurnFilter
from attache_filters.sdk.http import HttpBelow, HttpRequest, HttpResponse

Filters = Sequence[Filter[Any]]


@dataclass(slots=True)
class Chain:
    """The filters of one exchange.

    Attributes:
        bottom: sends a request to what is below them all.
        check: whether a stream of events may go on; asked for every event that one filter takes from another.
        turn_bottom: the same for turns, where what is below is in this process; None means by way of `bottom`.
        scope: closed when the exchange is over; bodies that nobody read to their end are closed with it.
        told: the response headers that filters asked for, of this segment and of those below it.
        unattended: whether the exchange goes on without its client, as a filter asked for; None: it does not.
    """

    bottom: HttpBelow
    scope: Scope
    check: Check = unchecked
    turn_bottom: Below | None = None
    told: dict[str, str] = field(default_factory=dict)
    unattended: Unattended | None = None

    async def answer(self, filters: Filters, request: HttpRequest) -> HttpResponse:
        """Run `filters`, outermost first. Errors before the first event or byte are responses here.

        Raises:
            StreamEndedError: the exchange is over, and nobody is there to be answered.
        """
        name = type(filters[0]).__qualname__ if filters else "below"
        try:
            return await self._send(filters, request)
        except StreamEndedError:
            raise
        except Exception as error:  # noqa: BLE001 - the edge between filters: any bug of one ends its turn only
            return encode_error(as_attache_error(name, error), self.told)

    async def _send(self, filters: Filters, request: HttpRequest) -> HttpResponse:
        if not filters:
            return await self.bottom(request)
        first = filters[0]
        if isinstance(first, HttpFilter):
            return await first(request, partial(self.answer, filters[1:]))
        turn = decode_turn(request)
        events = self.turns(filters, method=request.method, path=request.path)(turn)
        self.scope.own(events)
        return await encode_answer(events, stream=turn.stream, headers=self.told)

    def turns(self, filters: Filters, *, method: str, path: str) -> Below:
        """What a `TurnFilter` above `filters` calls; `method` and `path` are those of the request it came from."""
        if not filters and self.turn_bottom is not None:
            return partial(_guard_below, self.turn_bottom)
        match filters[0] if filters else None:
            case RequestFilter() as first:
                return partial(self._ask, first, self.turns(filters[1:], method=method, path=path))
            case TurnFilter() as first:
                return partial(self._run, first, self.turns(filters[1:], method=method, path=path))
            case InferenceFilter() as first:
                return partial(self._infer, first, filters[1:])
            case first:
                name = type(first).__qualname__ if first else "below"
                return lambda turn: guarded(name, lambda _: self._over_http(filters, turn, method, path), self.check)

    def _infer(self, first: InferenceFilter[Any], rest: Filters, turn: TurnRequest) -> AsyncGenerator[Event, None]:
        """One round of an `InferenceFilter`; the response that it leaves unread is closed when it ends."""
        name = type(first).__qualname__
        report = RoundReport(name)

        def source(scope: Scope) -> AsyncIterator[Event]:
            async def below(request: HttpRequest) -> HttpResponse:
                accept = EVENT_STREAM_TYPE if turn.stream else JSON_TYPE
                headers = {**request.headers, "accept": accept}
                asking = HttpRequest(request.method, request.path, headers, request.body)
                response = await self.answer(rest, asking)
                report.heard(response)
                scope.own(response.body)
                return response

            return EventStream(ReportedEvents(first(turn, below), report))

        return guarded(name, source, self.check)

    def _ask(self, request_filter: RequestFilter[Any], below: Below, turn: TurnRequest) -> AsyncGenerator[Event, None]:
        """What is below the filter, as it is: that is guarded already."""

        async def asked() -> AsyncGenerator[Event, None]:
            try:
                return below(self._heard(await request_filter.request(turn)))
            except AttacheError:
                raise
            except Exception as error:
                raise as_attache_error(type(request_filter).__qualname__, error) from error

        return later(asked)

    def _run(self, turn_filter: TurnFilter[Any], below: Below, turn: TurnRequest) -> AsyncGenerator[Event, None]:
        """One call of a filter; what it opened below and left open is closed when it ends."""
        return guarded(
            type(turn_filter).__qualname__,
            lambda scope: turn_filter(turn, lambda below_turn: scope.own(below(self._heard(below_turn)))),
            self.check,
        )

    def _heard(self, turn: TurnRequest) -> TurnRequest:
        """The turn without what a filter said by it to the host: that is the exchange's now."""
        if turn.unattended is not None:
            self.unattended = turn.unattended
            turn = replace(turn, unattended=None)
        if not turn.response_headers:
            return turn
        self.told.update(turn.response_headers)
        return replace(turn, response_headers={})

    @batched
    async def _over_http(
        self, filters: Filters, turn: TurnRequest, method: str, path: str
    ) -> AsyncGenerator[Batch, None]:
        async with Scope() as scope:
            response = await self._send(filters, encode_turn(turn, method=method, path=path))
            scope.own(response.body)
            self.told.update(_of_filters(response.headers))
            async for batch in batches(scope.own(decode_answer(response))):
                yield batch


def _of_filters(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.startswith(RESPONSE_HEADER_PREFIX)}


def _guard_below(below: Below, turn: TurnRequest) -> AsyncGenerator[Event, None]:
    return guarded("below", lambda _: below(turn))
