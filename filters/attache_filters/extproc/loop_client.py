"""Sends sub-requests to a loop listener: Envoy again, with the chain that stands below a segment.

It is a transport, not a browser: no redirects, no cookies, no default headers, and no limit on how long a response may
take, because the turn's own limits and the client's patience bound it. It outlives turns and pools its connections.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from attache_core.errors import UpstreamError
from attache_core.events.error_codes import BROKE_OFF, UNAVAILABLE
from attache_core.http1 import BrokenOffError, Http1Body, Http1Connection, Http1Pool, Http1Request
from attache_filters.extproc.headers import request_headers, response_headers
from attache_filters.sdk.http import HttpRequest, HttpResponse

CONNECT_TIMEOUT_S = 5.0
MAX_IDLE_CONNECTIONS = 256
"""How many connections to one loop listener are kept for reuse; how many may be open is not limited."""

IDLE_S = 60.0
"""How long one is kept, in seconds."""


class LoopClient:
    """HTTP/1.1 to one loop listener on a Unix socket.

    Args:
        uds: the path of the socket. Nothing is connected before the first request.
    """

    def __init__(self, uds: str) -> None:
        self._uds = uds
        self._pool = Http1Pool(self._dial, max_idle=MAX_IDLE_CONNECTIONS, idle_s=IDLE_S)

    async def send(self, request: HttpRequest, *, authority: str) -> HttpResponse:
        """Send one request; the response's body arrives as it is read, and must be read to its end or closed.

        Raises:
            UpstreamError: 503 when the listener cannot be reached, 502 when it breaks off; the latter also while the
                body is read. The words are those of the API: to a client all below is the inference server.
        """
        headers = {**request_headers(request.headers), "host": authority or "localhost"}
        try:
            response = await self._pool.send(Http1Request(request.method, request.path, headers, request.body))
        except OSError as error:
            message = "The inference server is out of reach."
            raise UpstreamError(message, http_status=503, code=UNAVAILABLE) from error
        except BrokenOffError as error:
            raise _broken_off() from error
        return HttpResponse(response.status, response_headers(response.headers), LoopBody(response.body))

    async def close(self) -> None:
        """Close every connection. Called once, after the last turn."""
        self._pool.close()

    async def _dial(self, protocol: Callable[[], Http1Connection]) -> Http1Connection:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            _, connection = await asyncio.get_running_loop().create_unix_connection(protocol, self._uds)
        return connection


class LoopBody:
    """The body of one response of a loop listener: an asynchronous iterator of bytes; `aclose` drops the rest."""

    def __init__(self, body: Http1Body) -> None:
        self._body = body

    def __aiter__(self) -> LoopBody:
        return self

    async def __anext__(self) -> bytes:
        try:
            return await anext(self._body)
        except BrokenOffError as error:
            raise _broken_off() from error

    async def aclose(self) -> None:
        """Nobody wants the rest: the sub-request ends now."""
        await self._body.aclose()


def _broken_off() -> UpstreamError:
    return UpstreamError("The inference server broke off its answer.", code=BROKE_OFF)
