"""A TCP proxy between a client and a server under test: it counts, and it can fall silent without closing anything."""

from __future__ import annotations

import asyncio
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass


@dataclass
class TcpProxy:
    """What passes between the two.

    Attributes:
        port: where clients connect, on 127.0.0.1.
        round_trips: how often a client spoke first, or after the server.
        silent: set to True, and no byte passes any more.
    """

    port: int = 0
    round_trips: int = 0
    silent: bool = False
    client_spoke: bool = False

    def heard(self, *, client: bool) -> None:
        """One of the two said something."""
        self.round_trips += client and not self.client_spoke
        self.client_spoke = client


@asynccontextmanager
async def running_proxy(server_port: int) -> AsyncIterator[TcpProxy]:
    """Pass connections on to a port of this machine while the block runs. Clients leave before its end."""
    proxy = TcpProxy()

    async def serve(reader: StreamReader, writer: StreamWriter) -> None:
        with suppress(OSError):
            server_reader, server_writer = await asyncio.open_connection("127.0.0.1", server_port)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(_pass(proxy, reader, server_writer, client=True))
                tasks.create_task(_pass(proxy, server_reader, writer, client=False))
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listener:
        proxy.port = listener.sockets[0].getsockname()[1]
        yield proxy


async def _pass(proxy: TcpProxy, reader: StreamReader, writer: StreamWriter, *, client: bool) -> None:
    with suppress(OSError):
        while data := await reader.read(65_536):
            if not proxy.silent:
                proxy.heard(client=client)
                writer.write(data)
                await writer.drain()
    writer.close()
