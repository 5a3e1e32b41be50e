"""A connection on a transport that takes nothing: what its peer can make it keep."""

from __future__ import annotations

import asyncio
import gc

from attache_core.tools.task_scope import task_scope
from attache_filters.extproc.transport.lean.call import Call
from attache_filters.extproc.transport.lean.connection import GrpcConnection
from filters.extproc.http2.raw_client import PREFACE, RST_STREAM, SETTINGS, frame, request, word

CANCEL = word(8)


class StuckTransport(asyncio.Transport):
    """What a peer that does not read leaves of a transport, seen from its protocol."""

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def is_closing(self) -> bool:
        return False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        pass


async def test_streams_that_the_peer_gives_up_while_it_does_not_read_leave_nothing() -> None:
    asked = 0

    async def answer(call: Call) -> None:
        nonlocal asked
        asked += 1
        await call.write(bytes(1000))

    async with task_scope() as tasks:
        connection = GrpcConnection({b"/service/method": answer}, tasks)
        connection.connection_made(StuckTransport())
        connection.data_received(PREFACE + frame(SETTINGS, 0, 0))
        connection.pause_writing()
        for stream_id in range(1, 21, 2):
            connection.data_received(request(stream_id))
            await asyncio.sleep(0)  # the call writes, and waits until the peer reads
            connection.data_received(frame(RST_STREAM, 0, stream_id, CANCEL))
        await tasks.settle(1)
    gc.collect()
    assert (asked, [each for each in gc.get_objects() if isinstance(each, Call)]) == (10, [])
