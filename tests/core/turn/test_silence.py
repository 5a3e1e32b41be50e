from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attache_core.turn.silence import MAX_AHEAD, with_signs_of_life

WAIT_S = 5.0
SOON_S = 0.002
NEVER_S = 3600.0
SIGN = "sign"


class Source:
    """Says `items`, each after a wait, and remembers how it ended."""

    def __init__(self, items: list[str], before: Callable[[str], Awaitable[None]] | None = None) -> None:
        self.said = 0
        self.ended: list[str] = []
        self._items = items
        self._before = before

    async def run(self) -> AsyncGenerator[str, None]:
        try:
            for item in self._items:
                if self._before is not None:
                    await self._before(item)
                self.said += 1
                yield item
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise
        except GeneratorExit:
            self.ended.append("closed")
            raise
        finally:
            self.ended.append("over")


async def all_of(events: AsyncGenerator[str, None]) -> list[str]:
    async with aclosing(events), asyncio.timeout(WAIT_S):
        return [event async for event in events]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(min_value=0, max_value=2), max_size=40))
async def test_items_come_in_order_with_a_sign_for_each_silence(silences: list[int]) -> None:
    """An item that waits for so many signs comes after at least as many, and nothing is lost or doubled."""
    signs = 0
    news = asyncio.Event()

    def sign() -> str:
        nonlocal signs
        signs += 1
        news.set()
        return SIGN

    async def silence(item: str) -> None:
        target = signs + silences[int(item)]
        while signs < target:
            news.clear()
            await news.wait()

    source = Source([str(number) for number in range(len(silences))], silence)
    got = await all_of(with_signs_of_life(source.run(), interval_s=SOON_S, sign=sign))

    assert [item for item in got if item != SIGN] == [str(number) for number in range(len(silences))]
    assert got.count(SIGN) == signs >= sum(silences)
    assert source.ended == ["over"]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(min_value=0, max_value=3), max_size=60), st.booleans())
async def test_numbers_that_both_sides_take_come_out_in_order(pauses: list[int], slow_reader: bool) -> None:
    taken = iter(range(10_000))

    async def source() -> AsyncGenerator[int, None]:
        for pause in pauses:
            for _ in range(pause):
                await asyncio.sleep(0)
            yield next(taken)

    got = []
    async with aclosing(with_signs_of_life(source(), interval_s=1e-6, sign=lambda: next(taken))) as numbers:
        async for number in numbers:
            got.append(number)
            if slow_reader:
                await asyncio.sleep(0)
    assert got == list(range(len(got)))
    assert len(got) >= len(pauses)


async def test_source_that_is_never_silent_for_so_long_gets_no_sign() -> None:
    source = Source(["a", "b"], lambda _: asyncio.sleep(0))
    assert await all_of(with_signs_of_life(source.run(), interval_s=NEVER_S, sign=lambda: SIGN)) == ["a", "b"]


async def test_failure_of_the_source_comes_after_its_items() -> None:
    async def source() -> AsyncGenerator[str, None]:
        yield "a"
        yield "b"
        raise LookupError("broken")

    events = with_signs_of_life(source(), interval_s=NEVER_S, sign=lambda: SIGN)
    assert [await anext(events), await anext(events)] == ["a", "b"]
    with pytest.raises(LookupError, match="broken"):
        await anext(events)


async def test_source_that_is_cancelled_from_inside_ends_the_stream() -> None:
    async def source() -> AsyncGenerator[str, None]:
        yield "a"
        raise asyncio.CancelledError

    assert await all_of(with_signs_of_life(source(), interval_s=NEVER_S, sign=lambda: SIGN)) == ["a"]


async def for_ever(item: str) -> None:
    if item != "a":
        await asyncio.Event().wait()


async def test_closing_it_interrupts_a_pending_read_and_closes_the_source() -> None:
    source = Source(["a", "b"], for_ever)
    async with aclosing(with_signs_of_life(source.run(), interval_s=SOON_S, sign=lambda: SIGN)) as events:
        assert [await anext(events), await anext(events)] == ["a", SIGN]
    assert source.ended == ["cancelled", "over"]
    assert len(asyncio.all_tasks()) == 1


async def test_closing_it_closes_a_source_that_has_more_to_say() -> None:
    source = Source(["a", "b", "c"])
    async with aclosing(with_signs_of_life(source.run(), interval_s=NEVER_S, sign=lambda: SIGN)) as events:
        assert await anext(events) == "a"
    assert source.ended[-1] == "over"
    assert len(asyncio.all_tasks()) == 1


async def test_cancelling_the_reader_interrupts_a_pending_read() -> None:
    reached = asyncio.Event()

    async def before(item: str) -> None:
        reached.set()
        await asyncio.Event().wait()

    source = Source(["a"], before)
    async with asyncio.timeout(WAIT_S), asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(all_of(with_signs_of_life(source.run(), interval_s=NEVER_S, sign=lambda: SIGN)))
        await reached.wait()
        reading.cancel()
    assert (reading.cancelled(), source.ended) == (True, ["cancelled", "over"])


async def test_closing_it_ends_a_source_that_ignores_its_cancellation_and_talks_on() -> None:
    said = 0

    async def stubborn() -> AsyncGenerator[str, None]:
        nonlocal said
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        while True:
            said += 1
            yield "more"

    async with asyncio.timeout(WAIT_S):
        async with aclosing(with_signs_of_life(stubborn(), interval_s=SOON_S, sign=lambda: SIGN)) as events:
            assert await anext(events) == SIGN
    assert said == 1
    assert len(asyncio.all_tasks()) == 1


async def test_it_that_is_never_read_never_starts_the_source() -> None:
    source = Source(["a"])
    await with_signs_of_life(source.run(), interval_s=SOON_S, sign=lambda: SIGN).aclose()
    assert (source.said, source.ended) == (0, [])


async def test_source_does_not_run_further_ahead_than_allowed() -> None:
    source = Source([str(number) for number in range(10 * MAX_AHEAD)])
    async with aclosing(with_signs_of_life(source.run(), interval_s=NEVER_S, sign=lambda: SIGN)) as events:
        async for event in events:
            for _ in range(3):
                await asyncio.sleep(0)
            assert source.said <= int(event) + 1 + MAX_AHEAD
    assert source.said == 10 * MAX_AHEAD


async def test_silence_of_a_slow_reader_is_not_the_sources() -> None:
    """What waits for the reader is no silence, however long it waits."""
    source = Source(["a", "b"])
    async with aclosing(with_signs_of_life(source.run(), interval_s=SOON_S, sign=lambda: SIGN)) as events:
        assert await anext(events) == "a"
        loop = asyncio.get_running_loop()
        later = loop.create_future()
        loop.call_later(5 * SOON_S, later.set_result, None)
        await later
        assert [event async for event in events] == ["b"]
