"""One HTTP exchange with a server that a URL leads to: judged, pinned, bounded in bytes, time and redirects.

Keeps nothing between two exchanges: no cookies, no connections, no cache; uses no proxy and asks for no compression,
because a compressed answer could be small on the wire and huge in memory. Each redirect is judged like the first URL;
credentials go to the first URL's origin alone, and are not taken up again once the exchange has left it (RFC 9110,
15.4, "Redirection 3xx"). Unaware of what is in a body.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import httpx2

from attache_core.tools.outbound.credentials import Credentials
from attache_core.tools.outbound.pinned import PinnedTransport
from attache_core.tools.outbound.policy import Endpoint, OutboundError, OutboundPolicy, UrlRefusedError

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_CONNECT_TIMEOUT_S = 5.0
"""For one address, so that there is time left to try the next one."""

_ONE_CONNECTION = httpx2.Limits(max_connections=1, max_keepalive_connections=0)


class ExchangeError(OutboundError):
    """The server did not answer, or not in a way that can be used. `reason` is a whole clause."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"{reason[0].upper()}{reason[1:]}.", reason)


@dataclass(frozen=True, slots=True)
class OutboundRequest:
    """What to ask.

    Attributes:
        headers: shown to every server that the exchange comes to.
        credentials: headers for the origin of `url` alone.
    """

    url: str = field(repr=False)
    method: Literal["GET", "POST"] = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    credentials: Credentials = field(default_factory=Credentials)


@dataclass(frozen=True, slots=True)
class ExchangeLimits:
    """Bounds of one exchange, redirects included.

    Attributes:
        timeout_s: seconds for all of it.
        max_bytes: of the answer's body; what is longer is cut off.
        max_redirects: how many are followed, and only for GET.
    """

    timeout_s: float
    max_bytes: int
    max_redirects: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back, of whatever status.

    Attributes:
        url: where it came from in the end, without a fragment.
        headers: names in lower case.
        body: at most `max_bytes` of it.
        cut: whether there was more.
    """

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    cut: bool = False


class Exchanges:
    """Makes exchanges. They share the trust store of TLS: the given one, or one read at the first use, in a thread."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self._loading = asyncio.Lock()

    async def fetch(self, request: OutboundRequest, policy: OutboundPolicy, limits: ExchangeLimits) -> Answer:
        """Ask, and follow redirects within the limits; one too many is an answer like any other.

        Raises:
            UrlRefusedError, UnknownHostError: as `OutboundPolicy.resolve`, for the URL or for a redirect's.
            ExchangeError: the server cannot be reached, took too long, broke off or sent what is not HTTP.
        """
        tls = await self._trust()
        try:
            async with asyncio.timeout(limits.timeout_s):
                return await _follow(request, policy, limits, tls)
        except (TimeoutError, httpx2.TimeoutException):
            raise ExchangeError(f"the server did not answer within {limits.timeout_s:g} s") from None
        except (httpx2.ConnectError, httpx2.UnsupportedProtocol):
            raise ExchangeError("the server cannot be reached") from None
        except httpx2.RequestError:
            raise ExchangeError("the server broke off, or its answer is not valid HTTP") from None

    async def _trust(self) -> ssl.SSLContext:
        async with self._loading:
            if self._tls is None:
                self._tls = await asyncio.to_thread(httpx2.create_ssl_context)
            return self._tls


async def _follow(
    request: OutboundRequest, policy: OutboundPolicy, limits: ExchangeLimits, tls: ssl.SSLContext
) -> Answer:
    trusted = endpoint = await policy.resolve(request.url)
    url = httpx2.URL(request.url).copy_with(fragment=None)
    credentials = request.credentials.reveal()
    for redirects_left in range(limits.max_redirects, -1, -1):
        asked = _request(request, url, credentials)
        answer = await _exchange(asked, endpoint, limits.max_bytes, tls)
        location = answer.headers.get("location") if answer.status in _REDIRECTS else None
        if location is None or not redirects_left or request.method != "GET":
            break
        url = _redirected(url, location)
        endpoint = await policy.resolve(str(url))
        if endpoint.origin != trusted.origin:
            credentials = {}
    return answer


def _redirected(url: httpx2.URL, location: str) -> httpx2.URL:
    try:
        return url.join(location).copy_with(fragment=None)
    except (httpx2.InvalidURL, ValueError):
        raise UrlRefusedError("it is not a valid URL") from None


def _request(asked: OutboundRequest, url: httpx2.URL, credentials: Mapping[str, str]) -> httpx2.Request:
    headers = {**asked.headers, **credentials, "accept-encoding": "identity"}
    timeouts = {"timeout": {"connect": _CONNECT_TIMEOUT_S}}
    return httpx2.Request(asked.method, url, headers=headers, content=asked.body, extensions=timeouts)


async def _exchange(request: httpx2.Request, endpoint: Endpoint, max_bytes: int, tls: ssl.SSLContext) -> Answer:
    async with PinnedTransport(endpoint, tls, _ONE_CONNECTION) as transport:
        response = await transport.handle_async_request(request)
        try:
            if response.headers.get("content-encoding", "identity").strip().lower() != "identity":
                raise ExchangeError("the server compressed its answer, though it was asked not to")
            body, cut = await _bounded(response, max_bytes)
        finally:
            await response.aclose()
    return Answer(str(request.url), response.status_code, dict(response.headers), body, cut)


async def _bounded(response: httpx2.Response, max_bytes: int) -> tuple[bytes, bool]:
    """As much of the body as is allowed, and whether there was more, which is not read."""
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    body = bytearray()
    async for chunk in response.stream:
        body += chunk
        if len(body) > max_bytes:
            return bytes(body[:max_bytes]), True
    return bytes(body), False
