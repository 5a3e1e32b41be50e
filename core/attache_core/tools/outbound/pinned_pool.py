"""Kept connections to one endpoint, at the addresses that were judged and at no others.

The same promises as `pinned`, for the lean HTTP client: the server sees the name of the URL in TLS, and must prove with
its certificate that it has it. Unaware of what is sent.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable

from attache_core.http1 import Http1Connection, Http1Pool
from attache_core.tools.outbound.policy import Endpoint


def pinned_pool(
    endpoint: Endpoint, tls: ssl.SSLContext, *, connect_timeout_s: float, max_idle: int, idle_s: float
) -> Http1Pool:
    """A pool of connections to `endpoint`; its `send` raises OSError when none of the addresses can be reached.

    Args:
        tls: for `https`; it says which certificates are believed.
        connect_timeout_s: seconds for each address.
    """
    verified = tls if endpoint.scheme == "https" else None
    server_name = endpoint.host if verified is not None else None

    async def dial_one(protocol: Callable[[], Http1Connection], address: str) -> Http1Connection:
        async with asyncio.timeout(connect_timeout_s):
            _, connection = await asyncio.get_running_loop().create_connection(
                protocol, address, endpoint.port, ssl=verified, server_hostname=server_name
            )
        return connection

    async def dial(protocol: Callable[[], Http1Connection]) -> Http1Connection:
        *others, last = endpoint.addresses
        for address in others:
            try:
                return await dial_one(protocol, address)
            except OSError:
                continue
        return await dial_one(protocol, last)

    return Http1Pool(dial, max_idle=max_idle, idle_s=idle_s)
