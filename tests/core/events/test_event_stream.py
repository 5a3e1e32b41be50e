"""Events in batches: whoever reads one at a time and whoever reads batches sees the same ones."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence

import pytest

from attache_core.errors import UpstreamError
from attache_core.events.delta_run import delta_run
from attache_core.events.event import Event
from attache_core.events.event_stream import Batch, EventStream, batched, batches, until_failure

RUN = delta_run({"type": "response.output_text.delta", "delta": ""}, ["a", "b", "c"], [2, 3, 4], None)
BATCHES: Sequence[Batch] = ([Event("one", {}), Event("two", {})], [RUN], [Event("last", {})])
ALONE = [event for batch in BATCHES for each in batch for event in (RUN.events() if each is RUN else (each,))]


@batched
async def told(closed: list[str] | None = None) -> AsyncGenerator[Batch, None]:
    try:
        for batch in BATCHES:
            yield batch
    finally:
        if closed is not None:
            closed.append("source")


async def one_at_a_time(events: Sequence[Event]) -> AsyncGenerator[Event, None]:
    for event in events:
        yield event


async def test_events_are_read_one_at_a_time_runs_taken_apart() -> None:
    assert [event async for event in told()] == ALONE


async def test_batches_come_as_they_are_made() -> None:
    assert [batch async for batch in batches(told())] == list(BATCHES)


@pytest.mark.parametrize("read", range(len(ALONE) + 1))
async def test_batches_go_on_where_single_events_ended(read: int) -> None:
    stream = told()
    begun = [await anext(stream) for _ in range(read)]
    rest = [event async for batch in batches(stream) for event in batch]
    assert begun + [event for each in rest for event in (RUN.events() if each is RUN else (each,))] == ALONE


async def test_events_that_come_one_at_a_time_are_batches_of_one() -> None:
    assert [batch async for batch in batches(one_at_a_time(ALONE))] == [(event,) for event in ALONE]


async def test_closing_closes_what_makes_the_batches_and_forgets_what_was_left() -> None:
    closed: list[str] = []
    stream = told(closed)
    await anext(stream)
    await stream.aclose()
    assert closed == ["source"]
    assert [event async for event in stream] == []


async def test_failure_thrown_in_closes_the_source() -> None:
    closed: list[str] = []
    stream = told(closed)
    await anext(stream)
    with pytest.raises(UpstreamError, match="gone"):
        await stream.athrow(UpstreamError("gone", code="gone"))
    assert closed == ["source"]


async def test_source_that_is_no_generator_is_read_as_well() -> None:
    class Source:
        def __init__(self) -> None:
            self._left = iter(BATCHES)

        def __aiter__(self) -> Source:
            return self

        async def __anext__(self) -> Batch:
            for batch in self._left:
                return batch
            raise StopAsyncIteration

        async def aclose(self) -> None:
            pass

    assert [event async for event in EventStream(Source())] == ALONE


def test_what_was_made_before_a_failure_is_kept() -> None:
    failure = UpstreamError("broken", code="broken")

    def made() -> Iterator[Event]:
        yield ALONE[0]
        raise failure

    assert until_failure(made()) == ([ALONE[0]], failure)
    assert until_failure(iter(ALONE)) == (ALONE, None)
