"""From a host to its addresses, in threads of its own: however slow a name's servers are, only other names wait.

The system's resolver blocks a thread, for longer than its caller may wait and without a way to stop it. Those of the
event loop's default pool are few and everybody's, so they are not used. An address needs no thread. Knows nothing of
which addresses are wanted.
"""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor

MAX_LOOKUPS = 64
"""Names that a process resolves at once; a further one waits, as long as its caller lets it."""

_threads = ThreadPoolExecutor(MAX_LOOKUPS, thread_name_prefix="resolver")


async def addresses_of(host: str, port: int) -> tuple[str, ...]:
    """The numeric addresses of a host, each once, in the resolver's order. No time limit but the caller's.

    Raises:
        OSError, UnicodeError, OverflowError: it has none, or is no host.
    """
    try:
        return _addresses(host, port, socket.AI_NUMERICHOST)
    except socket.gaierror:
        return await asyncio.get_running_loop().run_in_executor(_threads, _addresses, host, port, 0)


def _addresses(host: str, port: int, flags: int) -> tuple[str, ...]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    return tuple(dict.fromkeys(str(info[4][0]) for info in found))
