"""Sends sub-requests to a loop listener: Envoy again, with the chain that stands below a segment.

It is a transport, not a browser: no redirects, no cookies, no default headers, and no limit on how long a response may
take, because the turn's own limits and the client's patience bound it. It outlives turns and pools its connections.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

import httpx

from attache_core.errors import UpstreamError
from attache_core.events.error_codes import BROKE_OFF, UNAVAILABLE
from attache_filters.extproc.headers import request_headers, response_headers
from attache_filters.sdk.http import HttpRequest, HttpResponse

CONNECT_TIMEOUT_S = 5.0
MAX_IDLE_CONNECTIONS = 256
"""How many connections to one loop listener are kept for reuse; how many may be open is not limited."""

_OUT_OF_REACH = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_TIMEOUTS = {"connect": CONNECT_TIMEOUT_S, "pool": CONNECT_TIMEOUT_S, "read": None, "write": None}
_LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=MAX_IDLE_CONNECTIONS, keepalive_expiry=60)


class LoopClient:
    """HTTP/1.1 to one loop listener on a Unix socket.

    Args:
        uds: the path of the socket. Nothing is connected before the first request.
    """

    def __init__(self, uds: str) -> None:
        self._transport = httpx.AsyncHTTPTransport(uds=uds, limits=_LIMITS)

    async def send(self, request: HttpRequest, *, authority: str) -> HttpResponse:
        """Send one request; the response's body arrives as it is read, and must be read to its end or closed.

        Raises:
            UpstreamError: 503 when the listener cannot be reached, 502 when it breaks off; the latter also while the
                body is read. The words are those of the API: to a client all below is the inference server.
        """
        headers = {**request_headers(request.headers), "host": authority or "localhost"}
        outgoing = httpx.Request(
            request.method,
            "http://loop/",
            headers=[(name.encode(), value.encode("utf-8", "surrogateescape")) for name, value in headers.items()],
            content=request.body,
            extensions={"timeout": _TIMEOUTS, "target": request.path.encode("utf-8", "surrogateescape")},
        )
        try:
            response = await self._transport.handle_async_request(outgoing)
        except _OUT_OF_REACH as error:
            message = "The inference server is out of reach."
            raise UpstreamError(message, http_status=503, code=UNAVAILABLE) from error
        except httpx.TransportError as error:
            raise _broken_off() from error
        return HttpResponse(response.status_code, response_headers(dict(response.headers)), LoopBody(response))

    async def close(self) -> None:
        """Close every connection. Called once, after the last turn."""
        await self._transport.aclose()


class LoopBody:
    """The body of one response of a loop listener: an asynchronous iterator of bytes; `aclose` drops the rest."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self._stream = _read(response)

    def __aiter__(self) -> LoopBody:
        return self

    async def __anext__(self) -> bytes:
        try:
            return await anext(self._stream)
        except httpx.TransportError as error:
            raise _broken_off() from error

    async def aclose(self) -> None:
        """Nobody wants the rest: the sub-request ends now."""
        await self._stream.aclose()
        await self._response.aclose()


async def _read(response: httpx.Response) -> AsyncGenerator[bytes, None]:
    async for data in response.aiter_raw():
        if data:
            yield data


def _broken_off() -> UpstreamError:
    return UpstreamError("The inference server broke off its answer.", code=BROKE_OFF)
