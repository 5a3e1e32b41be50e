"""The server: which RPCs there are, and how it drains.

Invariants: a drain tells the health service first, then each connection; RPCs that a peer began before it knew are
served; connections made while it drains are for health checks; nothing is left of the server when the block ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial

from attache_core.tools.task_scope import TaskScope, task_scope
from attache_filters.extproc.headers import SEGMENT_METADATA_KEY
from attache_filters.extproc.segment import Segment
from attache_filters.extproc.transport.exchange import METHOD, SERVICE, serve_exchange
from attache_filters.extproc.transport.lean.call import Call
from attache_filters.extproc.transport.lean.connection import GrpcConnection, Handler
from attache_filters.extproc.transport.lean.health import Health
from attache_filters.extproc.transport.lean.listening import listening
from attache_filters.extproc.transport.rpc import RpcError, StatusCode
from attache_filters.extproc.wire import ext_proc_pb2 as pb

CLOSE_S = 1.0
"""How long a connection may take to send what has been written, once the server has ended."""

_PATH = f"/{SERVICE}/{METHOD}".encode()
_SEGMENT = SEGMENT_METADATA_KEY.encode()


@asynccontextmanager
async def serving_lean(address: str, segments: Mapping[str, Segment], grace_s: float) -> AsyncIterator[str]:
    """See `running_server`. Yields the address that it listens on."""
    async with task_scope() as tasks:
        server = _Server(segments, tasks)
        async with listening(address, server.connect) as bound:
            try:
                yield bound
            finally:
                await server.drain(grace_s)
        tasks.cancel()
        await tasks.settle(CLOSE_S)
        await server.close()


class _Server:
    """What listens at one address."""

    def __init__(self, segments: Mapping[str, Segment], tasks: TaskScope) -> None:
        self._tasks = tasks
        self._health = Health(SERVICE)
        self._handlers: Mapping[bytes, Handler] = {_PATH: partial(_process, segments), **self._health.handlers}
        self._connections: list[GrpcConnection] = []

    def connect(self) -> GrpcConnection:
        """Serve one connection more."""
        connection = GrpcConnection(self._handlers, self._tasks)
        self._connections = [each for each in self._connections if not each.closed.is_set()]
        self._connections.append(connection)
        return connection

    async def drain(self, grace_s: float) -> None:
        """Take no further exchanges, and let those under way end."""
        self._health.drain()
        self._handlers = {_PATH: _refuse, **self._health.handlers}
        under_way = list(self._connections)
        for connection in under_way:
            connection.drain()
        await _closed(under_way, grace_s)

    async def close(self) -> None:
        """End all connections."""
        for connection in self._connections:
            connection.close()
        await _closed(self._connections, CLOSE_S)
        for connection in self._connections:
            if not connection.closed.is_set():
                connection.abort()
        await _closed(self._connections, CLOSE_S)


async def _closed(connections: Iterable[GrpcConnection], timeout_s: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            for connection in connections:
                await connection.closed.wait()


async def _process(segments: Mapping[str, Segment], call: Call) -> None:
    name = call.head.get(_SEGMENT, b"").decode(errors="replace")
    await serve_exchange(segments, name, _MessageStream(call))


async def _refuse(_: Call) -> None:
    raise RpcError(StatusCode.UNAVAILABLE, "The server stops.")


class _MessageStream:
    """The messages of an ext_proc stream in a call."""

    def __init__(self, call: Call) -> None:
        self._call = call

    async def read(self) -> pb.ProcessingRequest | None:
        message = await self._call.read()
        return None if message is None else pb.ProcessingRequest.FromString(message)

    async def write(self, message: pb.ProcessingResponse) -> None:
        await self._call.write(message.SerializeToString())
