"""Where a server listens: a Unix socket, whose file is there as long as it does, or a TCP port."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path


@asynccontextmanager
async def listening(address: str, make_protocol: Callable[[], asyncio.Protocol]) -> AsyncIterator[str]:
    """Accept connections until the block ends; yields the address with the real port.

    The file of a socket at which nobody listens any more is replaced.

    Raises:
        OSError: the address cannot be used.
    """
    try:
        server = await _listen(address, make_protocol)
    except (OSError, ValueError) as error:
        raise OSError(f"Cannot listen on {address}: {error}") from error
    path = _socket_path(address)
    try:
        yield address if path else f"{address.rpartition(':')[0]}:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        if path:
            path.unlink(missing_ok=True)


async def _listen(address: str, make_protocol: Callable[[], asyncio.Protocol]) -> asyncio.Server:
    loop = asyncio.get_running_loop()
    if path := _socket_path(address):
        return await loop.create_unix_server(make_protocol, path)
    host, _, port = address.rpartition(":")
    return await loop.create_server(make_protocol, host.removeprefix("[").removesuffix("]"), int(port))


def _socket_path(address: str) -> Path | None:
    return Path(address.removeprefix("unix:")) if address.startswith("unix:") else None
