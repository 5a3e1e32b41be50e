"""Events on their way from one step of a turn to the next: one at a time, or in the batches in which they come.

What comes together, such as all that one read of the network completes, goes on together: whoever handles batches is
resumed once for all of it, where a chain of generators is resumed once for each event of each of its steps. Whoever
reads events one at a time needs to know nothing of this. Invariants: the events and their order are the same either
way, but that only batches have runs of deltas in one; a batch is never empty; what was made before a failure comes out
before it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from functools import wraps
from types import TracebackType
from typing import Final, ParamSpec, Protocol

from attache_core.errors import AttacheError
from attache_core.events.delta_run import one_by_one
from attache_core.events.event import Event

MAX_BATCH_BYTES: Final = 64 * 1024
"""How much of what a server wrote one batch is made of: whoever counts events, or what they become, counts batches."""

Batch = Sequence[Event]
"""Events that come together; at least one. Deltas may be in a `DeltaRun`."""


class BatchSource(Protocol):
    """What makes batches, such as an async generator of them. Closing it ends it, whether or not it has begun."""

    def __aiter__(self) -> AsyncIterator[Batch]: ...
    async def __anext__(self) -> Batch: ...
    async def aclose(self) -> None: ...


class EventStream(AsyncGenerator[Event, None]):
    """The events of `source`, one at a time; see `batches` for them together. One reader."""

    def __init__(self, source: BatchSource) -> None:
        self.source = source
        self._unread: Iterator[Event] = iter(())
        """What is left of the batch that was begun."""

    async def asend(self, value: None) -> Event:
        """The next event."""
        for event in self._unread:
            return event
        self._unread = one_by_one(await anext(self.source))
        return next(self._unread)

    async def athrow(
        self,
        typ: type[BaseException] | BaseException,
        val: BaseException | object = None,
        tb: TracebackType | None = None,
    ) -> Event:
        """End the stream, with that failure."""
        await self.aclose()
        raise typ

    async def aclose(self) -> None:
        """Nobody wants the rest."""
        self._unread = iter(())
        await self.source.aclose()

    def unread(self) -> Batch:
        """What is left of a batch that was begun one event at a time; it is nobody else's then."""
        return list(self._unread)


def batches(events: AsyncIterator[Event]) -> AsyncIterator[Batch]:
    """What `events` has not told yet, in the batches in which it comes."""
    if not isinstance(events, EventStream):
        return _Single(events)
    unread = events.unread()
    return _Begun(unread, events.source) if unread else aiter(events.source)


class _Single:
    """Events of whoever tells them one at a time."""

    def __init__(self, events: AsyncIterator[Event]) -> None:
        self._events = events

    def __aiter__(self) -> _Single:
        return self

    async def __anext__(self) -> Batch:
        return (await anext(self._events),)


class _Begun:
    """The rest of a batch, and those behind it."""

    def __init__(self, unread: Batch, source: BatchSource) -> None:
        self._unread = unread
        self._source = source

    def __aiter__(self) -> _Begun:
        return self

    async def __anext__(self) -> Batch:
        if self._unread:
            unread, self._unread = self._unread, ()
            return unread
        return await anext(self._source)


def batch_pieces(data: bytes, max_event_bytes: int = MAX_BATCH_BYTES) -> Sequence[bytes]:
    """What came of an event stream, in pieces of which a batch may be made each.

    No piece is longer than an event may be: so none that is too long comes in one piece with those before it.
    """
    size = min(MAX_BATCH_BYTES, max_event_bytes)
    if len(data) <= size:
        return (data,)
    return [data[start : start + size] for start in range(0, len(data), size)]


P = ParamSpec("P")


def batched(make: Callable[P, AsyncGenerator[Batch, None]]) -> Callable[P, EventStream]:
    """Makes an async generator of batches one of events, that whoever can takes in batches."""

    @wraps(make)
    def stream(*args: P.args, **kwargs: P.kwargs) -> EventStream:
        return EventStream(make(*args, **kwargs))

    return stream


@batched
async def later(open_stream: Callable[[], Awaitable[AsyncGenerator[Event, None]]]) -> AsyncGenerator[Batch, None]:
    """The events of the stream that `open_stream` opens, once they are asked for."""
    async with aclosing(await open_stream()) as events:
        async for batch in batches(events):
            yield batch


def until_failure(made: Iterator[Event]) -> tuple[list[Event], AttacheError | None]:
    """All that `made` yields, and the failure that ended it, if one did."""
    events: list[Event] = []
    try:
        events.extend(made)
    except AttacheError as failure:
        return events, failure
    return events, None
