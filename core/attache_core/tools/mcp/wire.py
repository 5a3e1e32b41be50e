"""HTTP to one MCP server: to pinned addresses only, bounded, and with every failure as an answer to its own request.

The SDK's transport ends the whole session when one request fails below HTTP, and forgets the status of an HTTP error.
So here, where HTTP is seen, a failed POST is answered with a JSON-RPC error that carries the public error object (see
`failure.wire_error`): the SDK hands it to the one waiting caller, and other calls of the session go on. What is no
answer to the request never reaches the SDK, which would wait on for one.

Knows HTTP and the outermost shape of JSON-RPC; unaware of tools. Redirects are not followed: the SDK does so only when
the client's `max_redirects` allows it, and `open_client` does not. Source: MCP specification, "Streamable HTTP".
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import aclosing

import httpx2

from attache_core import json_codec
from attache_core.json_codec import Json
from attache_core.tools.call_errors import PARSE_ERROR, protocol_error
from attache_core.tools.mcp.failure import NOT_MCP, http_failure, wire_error
from attache_core.tools.mcp.http_errors import error_object
from attache_core.tools.mcp.json_rpc import is_answer, is_refusal, message_of
from attache_core.tools.mcp.server import McpServer
from attache_core.tools.mcp.settings import McpSettings
from attache_core.tools.outbound.pinned import PinnedTransport
from attache_core.tools.outbound.policy import Endpoint
from attache_core.tools.task_scope import TaskScope

_MAX_EVENT_STREAMS = 16
"""GET requests per session. A server that ends its event stream at once would else be asked again every second."""

KEEPALIVE_S = 4.0
"""Common servers close idle connections after 5 s; a request on one that is just being closed would be lost."""

_SESSION_HEADER = "mcp-session-id"
_KEPT_HEADERS = ("content-type", _SESSION_HEADER)
_OTHER_TRANSPORT = frozenset({400, 404, 405})
"""How servers answer that take no POST at this URL, or not this one."""

_UNLIMITED = frozenset({"tools/call", "subscriptions/listen"})
"""Methods that may take as long as their caller lets them."""


class ServerWire(httpx2.AsyncBaseTransport):
    """The HTTP transport of one session.

    Attributes:
        broken: a request failed below HTTP, or the server no longer knows the session: a later use should open another.
        refused_handshake: the server answered `initialize` as one does that speaks another transport at this URL.
    """

    def __init__(self, endpoint: Endpoint, settings: McpSettings, tls: ssl.SSLContext, tasks: TaskScope) -> None:
        self.broken = False
        self.refused_handshake = False
        self._settings = settings
        self._tasks = tasks
        self._event_streams = 0
        self._http = PinnedTransport(endpoint, tls, connection_limits(settings))

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request of the SDK. A POST never raises."""
        if request.method == "POST":
            return await self._post(request)
        if request.method == "GET":
            self._event_streams += 1
            if self._event_streams > _MAX_EVENT_STREAMS:
                return httpx2.Response(405)
            return await self._send(request)
        async with asyncio.timeout(self._settings.close_timeout_s):
            return await self._send(request)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _post(self, request: httpx2.Request) -> httpx2.Response:
        asked = message_of(request.content) or {}
        method = asked.get("method")
        if method == "notifications/cancelled":
            # The SDK sends notifications one after the other: a server that is slow to take one would hold up all.
            self._tasks.start(self._notify(request))
            return httpx2.Response(202)
        limit = None
        if method not in _UNLIMITED:
            limit = asyncio.get_running_loop().time() + self._settings.connect_timeout_s
        try:
            async with asyncio.timeout_at(limit):
                response = await self._send(request)
                return await self._answer(request, asked, response, limit)
        except (httpx2.RequestError, TimeoutError) as error:
            self.broken = self.broken or not isinstance(error, httpx2.DecodingError)
            return _failure(error_object(error))

    async def _notify(self, request: httpx2.Request) -> None:
        try:
            async with asyncio.timeout(self._settings.connect_timeout_s):
                await (await self._send(request)).aclose()
        except (httpx2.TransportError, TimeoutError):
            self.broken = True

    async def _answer(
        self, request: httpx2.Request, asked: Json, response: httpx2.Response, limit: float | None
    ) -> httpx2.Response:
        """What the SDK is to see of an answer whose headers have arrived."""
        status, content_type = response.status_code, response.headers.get("content-type", "").lower()
        headers = {name: response.headers[name] for name in _KEPT_HEADERS if name in response.headers}
        stream = _Bounded(self, response, self._settings.max_message_bytes, limit)
        if status == 200 and content_type.startswith("text/event-stream"):
            return httpx2.Response(200, headers=headers, stream=stream)
        async with aclosing(stream):
            body = b"".join([chunk async for chunk in stream])
        message = message_of(body) if content_type.startswith("application/json") else None
        if status == 202:
            return httpx2.Response(202)
        if status == 404 and _SESSION_HEADER in request.headers:
            self.broken = True
            return _failure(http_failure(404))
        asked_id = asked.get("id")
        if message is not None and (
            (status == 200 and is_answer(message, asked_id)) or (status >= 400 and is_refusal(message))
        ):
            return httpx2.Response(status, headers=headers, content=_with_id(asked_id, message, body))
        if asked.get("method") == "initialize" and status in _OTHER_TRANSPORT:
            self.refused_handshake = True
        return _failure(protocol_error(PARSE_ERROR, NOT_MCP) if status == 200 else http_failure(status))

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        """Bodies are timed by whoever reads them: a call may take as long as its caller lets it."""
        timeouts = {**request.extensions.get("timeout", {}), "read": None}
        request.extensions = {**request.extensions, "timeout": timeouts}
        return await self._http.handle_async_request(request)


class _Bounded(httpx2.AsyncByteStream):
    """A response body that may neither be longer nor take longer than agreed."""

    def __init__(self, wire: ServerWire, response: httpx2.Response, max_bytes: int, limit: float | None) -> None:
        self._wire = wire
        self._response = response
        self._max_bytes = max_bytes
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        assert isinstance(self._response.stream, httpx2.AsyncByteStream)
        chunks = self._response.stream.__aiter__()
        size = 0
        try:
            while (chunk := await self._next(chunks)) is not None:
                size += len(chunk)
                if size > self._max_bytes:
                    raise httpx2.DecodingError("more bytes than mcp.max_message_bytes")
                yield chunk
        except httpx2.TransportError:
            self._wire.broken = True
            raise

    async def _next(self, chunks: AsyncIterator[bytes]) -> bytes | None:
        try:
            async with asyncio.timeout_at(self._limit):
                return await anext(chunks, None)
        except TimeoutError:
            raise httpx2.ReadTimeout("the body took longer than mcp.connect_timeout_s") from None

    async def aclose(self) -> None:
        await self._response.aclose()


def connection_limits(settings: McpSettings) -> httpx2.Limits:
    """How many connections one session may have, and how long an idle one is kept."""
    return httpx2.Limits(
        max_connections=settings.max_connections_per_session,
        max_keepalive_connections=settings.max_connections_per_session,
        keepalive_expiry=KEEPALIVE_S,
    )


def open_client(server: McpServer, wire: ServerWire, settings: McpSettings) -> httpx2.AsyncClient:
    """The HTTP client to give to the SDK."""
    return httpx2.AsyncClient(
        transport=wire,
        # A compressed answer could be small on the wire and huge in memory.
        headers={**server.credentials.reveal(), "accept-encoding": "identity"},
        timeout=settings.connect_timeout_s,
        max_redirects=0,
        follow_redirects=False,
        trust_env=False,
    )


def _with_id(asked_id: object, message: Json, body: bytes) -> bytes:
    """An answer under the very id that was asked, which the SDK waits for."""
    given_id = message.get("id")
    same = type(given_id) is type(asked_id) and given_id == asked_id
    return body if same else json_codec.encode({**message, "id": asked_id})


def _failure(error: Json) -> httpx2.Response:
    """An answer that the SDK takes for the server's refusal of this one request."""
    return httpx2.Response(400, json={"jsonrpc": "2.0", "id": None, "error": wire_error(error)})
