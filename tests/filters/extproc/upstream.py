"""A tiny HTTP/1.1 upstream on a Unix socket: a test writes what it answers as one coroutine over h11."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import h11


@dataclass(frozen=True, slots=True)
class Received:
    """One request as it reached the upstream."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class Answerer:
    """Writes one response; the connection may be cut at any point."""

    connection: h11.Connection
    writer: asyncio.StreamWriter

    async def start(self, status: int, headers: dict[str, str] | None = None) -> None:
        """Send the response's head."""
        await self._send(h11.Response(status_code=status, headers=list((headers or {}).items())))

    async def data(self, data: bytes) -> None:
        """Send some body."""
        await self._send(h11.Data(data=data))

    async def end(self, trailers: dict[str, str] | None = None) -> None:
        """End the response."""
        await self._send(h11.EndOfMessage(headers=list((trailers or {}).items())))

    async def whole(self, status: int, headers: dict[str, str], body: bytes) -> None:
        """A whole response with a content-length."""
        await self.start(status, {**headers, "content-length": str(len(body))})
        if body:
            await self.data(body)
        await self.end()

    def cut(self) -> None:
        """Reset the connection."""
        self.writer.transport.abort()

    async def until_left(self) -> None:
        """Wait until the peer has closed the connection."""
        while not self.writer.transport.is_closing():
            if not await self._reader.read(1):
                return

    async def _send(self, event: h11.Event) -> None:
        self.writer.write(self.connection.send(event) or b"")
        await self.writer.drain()

    @property
    def _reader(self) -> asyncio.StreamReader:
        reader = self.writer.transport.get_protocol()
        assert isinstance(reader, asyncio.StreamReaderProtocol)
        stream = reader._stream_reader  # type: ignore[attr-defined]  # asyncio keeps it private
        assert isinstance(stream, asyncio.StreamReader)
        return stream


Answer = Callable[[Received, Answerer], Awaitable[None]]


@dataclass(slots=True)
class Upstream:
    """What reached the upstream so far."""

    received: list[Received] = field(default_factory=list)


@asynccontextmanager
async def running_upstream(path: Path, answer: Answer) -> AsyncIterator[Upstream]:
    """Serve on `path`, answering every request by `answer`."""
    upstream = Upstream()
    open_writers: set[asyncio.StreamWriter] = set()
    all_closed = asyncio.Condition()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_writers.add(writer)
        try:
            while await _serve_one(upstream, answer, reader, writer):
                pass
        except (ConnectionError, h11.ProtocolError):
            pass
        finally:
            writer.close()
            async with all_closed:
                open_writers.discard(writer)
                all_closed.notify_all()

    server = await asyncio.start_unix_server(serve, path)
    try:
        yield upstream
    finally:
        server.close()
        for writer in list(open_writers):
            writer.transport.abort()
        async with asyncio.timeout(5), all_closed:
            await all_closed.wait_for(lambda: not open_writers)
        path.unlink(missing_ok=True)  # noqa: ASYNC240 - one file of the test's own


async def _serve_one(
    upstream: Upstream, answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> bool:
    connection = h11.Connection(h11.SERVER)
    head: h11.Request | None = None
    body = bytearray()
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(1 << 16))
        elif isinstance(event, h11.Request):
            head = event
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage):
            break
        else:
            return False
    assert head is not None
    headers = {name.decode(): value.decode() for name, value in head.headers}
    received = Received(head.method.decode(), head.target.decode(), headers, bytes(body))
    upstream.received.append(received)
    await answer(received, Answerer(connection, writer))
    return connection.our_state is h11.DONE and not connection.trailing_data[0]
