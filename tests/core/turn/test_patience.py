from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from attache_core.errors import UpstreamError
from attache_core.turn.patience import PatientBody

SHORT_S = 0.02
LONG_S = 60.0
WAIT_S = 5.0


async def saying(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def falling_silent(*chunks: bytes, closed: asyncio.Event | None = None) -> AsyncIterator[bytes]:
    try:
        for chunk in chunks:
            yield chunk
        await asyncio.Event().wait()
    finally:
        if closed is not None:
            closed.set()


async def test_bytes_in_time_are_passed_on() -> None:
    assert [chunk async for chunk in PatientBody(saying(b"a", b"b"), SHORT_S)] == [b"a", b"b"]


async def test_silence_is_504_after_what_was_said() -> None:
    closed = asyncio.Event()
    body = PatientBody(falling_silent(b"a", b"b", closed=closed), SHORT_S)
    assert [await anext(body), await anext(body)] == [b"a", b"b"]
    with pytest.raises(UpstreamError) as silent:
        await anext(body)

    assert closed.is_set()
    assert (silent.value.http_status, silent.value.code) == (504, "upstream_timeout")
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_time_that_the_reader_takes_does_not_count() -> None:
    """A slow client is not the server's fault."""
    heard = []
    async for chunk in PatientBody(saying(b"a", b"b", b"c"), SHORT_S):
        heard.append(chunk)
        await asyncio.sleep(2 * SHORT_S)

    assert heard == [b"a", b"b", b"c"]


async def test_slow_but_steady_bytes_never_time_out() -> None:
    async def steady() -> AsyncIterator[bytes]:
        for _ in range(6):
            await asyncio.sleep(SHORT_S / 2)
            yield b"a"

    assert b"".join([chunk async for chunk in PatientBody(steady(), 3 * SHORT_S)]) == b"aaaaaa"


async def test_cancellation_from_outside_goes_through() -> None:
    begun = asyncio.Event()

    async def read() -> None:
        async for _ in PatientBody(falling_silent(b"a"), LONG_S):
            begun.set()

    async with asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(read())
        await begun.wait()
        reading.cancel()

    assert reading.cancelled()


async def test_silence_is_504_also_for_a_task_that_is_being_cancelled() -> None:
    """Such a task may read a body while it cleans up; its own cancellation has been delivered by then."""

    async def clean_up() -> int:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            with pytest.raises(UpstreamError):
                await anext(PatientBody(falling_silent(), SHORT_S))
        return task.cancelling()

    async with asyncio.timeout(WAIT_S), asyncio.TaskGroup() as tasks:
        cleaning_up = tasks.create_task(clean_up())
    assert cleaning_up.result() == 1


@pytest.mark.parametrize("end", [b"late", OSError("reset")])
async def test_body_that_ends_its_wait_otherwise_leaves_its_reader_uncancelled(end: bytes | OSError) -> None:
    """A cancelled read may still bring bytes, or fail for a reason of its own."""

    async def stubborn() -> AsyncIterator[bytes]:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        if isinstance(end, OSError):
            raise end
        yield end
        yield b"more"

    body = PatientBody(stubborn(), SHORT_S)
    if isinstance(end, bytes):
        assert [chunk async for chunk in body] == [b"late", b"more"]
    else:
        with pytest.raises(OSError, match="reset"):
            await anext(body)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_limit_of_the_reader_itself_goes_through() -> None:
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(PatientBody(falling_silent(), LONG_S)), SHORT_S)


async def test_closed_body_leaves_no_timer() -> None:
    body = PatientBody(saying(b"a", b"b"), LONG_S)
    await anext(body)
    body.close()
    body.close()
    assert await anext(body) == b"b"
    with pytest.raises(StopAsyncIteration):
        await anext(body)
