"""Events on their way from one step of a turn to the next: one at a time, or in the batches in which they come.

What comes together, such as all that one read of the network completes, goes on together: whoever handles batches is
resumed once for all of it, where a chain of generators is resumed once for each event of each of its steps. Whoever
reads events one at a time needs to know nothing of this. Invariants: the events and their order are the same either
way; a batch is never empty; what was made before a failure comes out before it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from functools import wraps
from types import TracebackType
from typing import ParamSpec, Protocol

from attache_core.errors import AttacheError
from attache_core.events.event import Event

Batch = Sequence[Event]
"""Events that come together; at least one."""


class BatchSource(Protocol):
    """What makes batches, such as an async generator of them. Closing it ends it, whether or not it has begun."""

    async def __anext__(self) -> Batch: ...
    async def aclose(self) -> None: ...


class EventStream(AsyncGenerator[Event, None]):
    """The events of `source`, one at a time; see `batches` for them together. One reader; both ways may be mixed."""

    def __init__(self, source: BatchSource) -> None:
        self._source = source
        self._unread: Iterator[Event] = iter(())

    async def asend(self, value: None) -> Event:
        """The next event."""
        for event in self._unread:
            return event
        self._unread = iter(await anext(self._source))
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
        await self._source.aclose()

    async def next_batch(self) -> Batch:
        """The next events, together. Raises StopAsyncIteration when there are no more."""
        return list(self._unread) or await anext(self._source)


class batches:  # noqa: N801 - reads as the function that it is to whoever loops over it
    """`async for batch in batches(events)`: all of `events`, in the batches in which they come."""

    __slots__ = ("_events",)

    def __init__(self, events: AsyncIterator[Event]) -> None:
        self._events = events

    def __aiter__(self) -> batches:
        return self

    async def __anext__(self) -> Batch:
        events = self._events
        return await events.next_batch() if isinstance(events, EventStream) else (await anext(events),)


P = ParamSpec("P")


def batched(make: Callable[P, AsyncGenerator[Batch, None]]) -> Callable[P, EventStream]:
    """Makes an async generator of batches one of events, that whoever can takes in batches."""

    @wraps(make)
    def stream(*args: P.args, **kwargs: P.kwargs) -> EventStream:
        return EventStream(make(*args, **kwargs))

    return stream


def until_failure(made: Iterator[Event]) -> tuple[list[Event], AttacheError | None]:
    """All that `made` yields, and the failure that ended it, if one did."""
    events: list[Event] = []
    try:
        events.extend(made)
    except AttacheError as failure:
        return events, failure
    return events, None
