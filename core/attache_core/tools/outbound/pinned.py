"""HTTP to one endpoint, at the addresses that were judged and at no others.

The server still sees the name of the URL, in the `Host` header and in TLS, and must prove with its certificate that it
has it. Unaware of redirects, bodies and time limits.
"""

from __future__ import annotations

import ssl
from typing import Any

import httpx2

from attache_core.tools.outbound.policy import Endpoint, origin_of


class PinnedTransport(httpx2.AsyncBaseTransport):
    """A transport for requests to one endpoint. Raises `httpx2.TransportError`, as any transport does."""

    def __init__(self, endpoint: Endpoint, tls: ssl.SSLContext, limits: httpx2.Limits) -> None:
        self._endpoint = endpoint
        self._http = httpx2.AsyncHTTPTransport(verify=tls, limits=limits)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Try the addresses in turn; only a connection that was never made is tried elsewhere."""
        if origin_of(request.url) != self._endpoint.origin:
            raise httpx2.UnsupportedProtocol("a request to another endpoint than the one that was resolved")
        *others, last = self._endpoint.addresses
        for address in others:
            try:
                return await self._http.handle_async_request(self._pinned(request, address))
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                continue
        return await self._http.handle_async_request(self._pinned(request, last))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    def _pinned(self, request: httpx2.Request, address: str) -> httpx2.Request:
        extensions: dict[str, Any] = dict(request.extensions)
        if self._endpoint.scheme == "https":
            extensions["sni_hostname"] = self._endpoint.host
        return httpx2.Request(
            request.method,
            request.url.copy_with(host=address),
            headers=request.headers,
            stream=request.stream,
            extensions=extensions,
        )
