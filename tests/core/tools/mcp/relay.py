"""A TCP relay in front of a server: it can refuse connections, and answer a request with what is no HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

from attache_core.tools.task_scope import TaskScope, task_scope


class Relay:
    """Passes bytes on.

    Attributes:
        url: as the server's, with the relay's port.
        gibberish_for: a request that has these bytes in one piece of it is answered with gibberish, and not passed on.
    """

    def __init__(self, url: str, tasks: TaskScope) -> None:
        self._target = urlsplit(url)
        self._tasks = tasks
        self._writers: set[asyncio.StreamWriter] = set()
        self._listener: asyncio.Server | None = None
        self.url = url
        self.gibberish_for: bytes | None = None

    async def listen(self) -> None:
        self._listener = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        port = self._listener.sockets[0].getsockname()[1]
        self.url = self._target._replace(netloc=f"127.0.0.1:{port}").geturl()

    def lead_to(self, url: str) -> None:
        """Pass connections that come from now on to another server."""
        self._target = urlsplit(url)

    async def refuse(self) -> None:
        """Take no further connection, and end those that are open."""
        assert self._listener is not None
        self._listener.close()
        for writer in tuple(self._writers):
            writer.transport.abort()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.start(self._serve(reader, writer))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert self._target.port is not None
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", self._target.port)
        self._writers |= {writer, inner_writer}
        back = self._tasks.start(self._pass(inner_reader, writer))
        await self._pass(reader, inner_writer, answer=writer)
        await back

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: asyncio.StreamWriter | None = None
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                if answer is not None and self.gibberish_for is not None and self.gibberish_for in data:
                    answer.write(b"\x00\x01 this is no HTTP\r\n\r\n")
                    await answer.drain()
                    answer.close()
                    break
                writer.write(data)
                await writer.drain()
        self._writers.discard(writer)
        writer.close()


@asynccontextmanager
async def relay_to(url: str) -> AsyncIterator[Relay]:
    """A relay for as long as the block lasts."""
    async with task_scope() as tasks:
        relay = Relay(url, tasks)
        await relay.listen()
        yield relay
        await relay.refuse()
