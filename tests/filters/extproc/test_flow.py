"""The pipe and the outbox: everything arrives, in order, together where it can, and never more than is allowed."""

from __future__ import annotations

import asyncio

import pytest

from attache_filters.extproc.body_pipe import BodyPipe
from attache_filters.extproc.outbox import Outbox
from attache_filters.extproc.session import Session
from attache_filters.extproc.stream_end import StreamEndedError
from filters.extproc import from_envoy as envoy
from filters.extproc.to_envoy import said_all

ENDED = StreamEndedError("the response was sent")


async def test_bytes_that_came_by_the_time_of_a_read_come_together() -> None:
    pipe = BodyPipe()
    for data in (b"a", b"b", b"c"):
        await pipe.put(data)
    pipe.end()
    assert [data async for data in pipe] == [b"abc"]


async def test_full_pipe_holds_its_writer_until_it_is_read_or_closed() -> None:
    pipe = BodyPipe(max_unread_bytes=2)
    await pipe.put(b"ab")
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        held = tasks.create_task(pipe.put(b"c"))
        await asyncio.sleep(0)
        assert not held.done()
        assert await anext(pipe) == b"ab"
        await held
        await pipe.put(b"d")
        dropped = tasks.create_task(pipe.put(b"e"))
        await asyncio.sleep(0)
        pipe.close()
        await dropped
    assert [data async for data in pipe] == []


async def test_failure_comes_after_what_has_arrived_and_not_after_the_end() -> None:
    pipe = BodyPipe()
    await pipe.put(b"a")
    pipe.fail(ENDED)
    assert await anext(pipe) == b"a"
    with pytest.raises(StreamEndedError):
        await anext(pipe)
    whole = BodyPipe()
    whole.end()
    whole.fail(ENDED)
    assert [data async for data in whole] == []


def held_session() -> Session:
    session = Session()
    session.receive(envoy.get_request())
    return session


async def test_outbox_merges_body_and_keeps_the_order() -> None:
    outbox = Outbox(held_session())
    outbox.start(200, {})
    for data in (b"a", b"b"):
        await outbox.send_body(data)
    outbox.end()
    assert said_all(await outbox.take()) == [
        ("reply_headers", {":status": "200"}, []),
        ("reply_body", b"ab", True),
    ]


async def test_full_outbox_holds_the_filters_until_it_is_taken_or_fails() -> None:
    outbox = Outbox(held_session(), max_unsent_bytes=2)
    outbox.start(200, {})
    await outbox.send_body(b"ab")
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        held = tasks.create_task(outbox.send_body(b"cd"))
        await asyncio.sleep(0)
        assert not held.done()
        assert len(await outbox.take()) == 2
        await held
        failing = tasks.create_task(_fails(outbox))
        await asyncio.sleep(0)
        outbox.fail(ENDED)
        await failing
    for say in (outbox.end, lambda: outbox.start(200, {}), lambda: outbox.reply(200, {}, b"")):
        with pytest.raises(StreamEndedError):
            say()
    with pytest.raises(StreamEndedError):
        await outbox.take()


async def _fails(outbox: Outbox) -> None:
    with pytest.raises(StreamEndedError):
        await outbox.send_body(b"ef")
