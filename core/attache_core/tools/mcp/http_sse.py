"""MCP's older transport, "HTTP with SSE": one event stream for all answers, and a POST for each message.

The SDK has it, too, but a POST that fails there leaves its caller waiting, and one event has no limit. Here every
failure is the answer to its own request, as in `wire`: a message that the server does not take fails that request; a
stream that breaks off, or holds what is not MCP, or more than there may be between two answers, fails those that wait
for it, and ends the session. The server names where to POST; that must be at its own origin, which the pinned transport
holds as well.

Knows HTTP and the outermost shape of JSON-RPC; unaware of tools. Source: MCP specification 2024-11-05, "HTTP with SSE".
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from urllib.parse import urljoin

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.message import SessionMessage
from mcp_types import (
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from attache_core.errors import UpstreamError
from attache_core.events.sse import SseDecoder, SseFrame
from attache_core.json_codec import Json
from attache_core.tools.call_errors import PARSE_ERROR, protocol_error
from attache_core.tools.mcp.failure import (
    NOT_MCP,
    McpServerError,
    TransportNotSpokenError,
    closed,
    http_failure,
    too_large,
    wire_error,
)
from attache_core.tools.mcp.http_errors import error_object
from attache_core.tools.mcp.server import McpServer
from attache_core.tools.mcp.settings import McpSettings
from attache_core.tools.mcp.wire import connection_limits
from attache_core.tools.outbound.pinned import PinnedTransport
from attache_core.tools.outbound.policy import Endpoint, origin_of
from attache_core.tools.task_scope import TaskScope, task_scope

_IN_ORDER = frozenset({"initialize", "notifications/initialized"})
"""Messages that must have been taken before the next one is sent; others do not wait for one another."""

_MAX_REPLY_BYTES = 64 * 1024
"""What is read of the reply to a POST, which says nothing, so that its connection can be used again."""

_MAX_REPLIES = 16
"""Replies to the server's own requests that are on their way; further ones are left out, or a server that asks and asks
and takes no reply would have the gateway collect them."""

_SESSION_UNKNOWN = frozenset({400, 404})
"""How servers answer a message of a session that they have forgotten."""

_ELSEWHERE = "The MCP server wants its messages sent to another origin than its own."

Incoming = MemoryObjectSendStream[SessionMessage | Exception]
Outgoing = MemoryObjectReceiveStream[SessionMessage]
Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]


class SseWire:
    """The connection of one session.

    Attributes:
        broken: its stream ended, or the server no longer knows the session: a later use should open another.
    """

    def __init__(self, server: McpServer, endpoint: Endpoint, settings: McpSettings, tls: ssl.SSLContext) -> None:
        self.broken = False
        self._url = server.url
        self._endpoint = endpoint
        self._settings = settings
        self._pending: set[RequestId] = set()
        self._heard_bytes = 0
        self._http = httpx2.AsyncClient(
            transport=PinnedTransport(endpoint, tls, connection_limits(settings)),
            headers={**server.credentials.reveal(), "accept-encoding": "identity"},
            timeout=None,
            follow_redirects=False,
            trust_env=False,
        )

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Streams]:
        """What the SDK reads from and writes to, as long as the block lasts. No time limit but the caller's.

        Raises:
            TransportNotSpokenError: the server answers with something else than an event stream.
            McpServerError: it cannot be reached, breaks off, or wants messages sent elsewhere.
        """
        heard, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, said = anyio.create_memory_object_stream[SessionMessage](0)
        async with (
            heard,
            incoming,
            outgoing,
            said,
            self._http,
            self._event_stream() as response,
            aclosing(self._frames(response)) as frames,
        ):
            post_url = await self._post_url(frames)
            async with task_scope() as tasks:
                tasks.start(self._hear(frames, heard))
                tasks.start(self._say(said, post_url, heard, tasks))
                yield incoming, outgoing

    @asynccontextmanager
    async def _event_stream(self) -> AsyncIterator[httpx2.Response]:
        request = self._http.build_request("GET", self._url, headers={"accept": "text/event-stream"})
        try:
            response = await self._http.send(request, stream=True)
        except httpx2.RequestError as error:
            raise McpServerError(error_object(error)) from None
        async with aclosing(response):
            content_type = response.headers.get("content-type", "").lower()
            if response.status_code != httpx2.codes.OK:
                raise TransportNotSpokenError(http_failure(response.status_code))
            if not content_type.startswith("text/event-stream"):
                raise TransportNotSpokenError(protocol_error(PARSE_ERROR, NOT_MCP))
            yield response

    async def _frames(self, response: httpx2.Response) -> AsyncGenerator[SseFrame, None]:
        decoder = SseDecoder(max_line_bytes=self._settings.max_message_bytes)
        try:
            async for chunk in response.aiter_raw():
                self._count(len(chunk))
                for frame in decoder.feed(chunk):
                    yield frame
        except UpstreamError:
            raise McpServerError(too_large()) from None
        except httpx2.TransportError as error:
            raise McpServerError(error_object(error)) from None

    def _count(self, size: int) -> None:
        """Whose answer the bytes belong to cannot be told, so each request that waits for one may have as many."""
        self._heard_bytes += size
        if self._heard_bytes > self._settings.max_message_bytes * max(1, len(self._pending)):
            raise McpServerError(too_large())

    def _await_answer(self, request_id: RequestId) -> None:
        self._pending.add(request_id)
        self._heard_bytes = 0

    def _await_no_answer(self, request_id: RequestId) -> None:
        """The answer has come, or nobody wants it."""
        self._pending.discard(coerce_request_id(request_id))
        self._heard_bytes = 0

    async def _post_url(self, frames: AsyncIterator[SseFrame]) -> httpx2.URL:
        async for frame in frames:
            if frame.event == "endpoint":
                return self._at_own_origin(frame.data)
        raise McpServerError(closed())

    def _at_own_origin(self, data: bytes) -> httpx2.URL:
        try:
            url = httpx2.URL(urljoin(self._url, data.decode()))
            is_own = origin_of(url) == self._endpoint.origin and not url.userinfo
        except (httpx2.InvalidURL, ValueError, TypeError):
            is_own = False
        if not is_own:
            raise McpServerError(protocol_error(PARSE_ERROR, _ELSEWHERE))
        return url

    async def _hear(self, frames: AsyncIterator[SseFrame], heard: Incoming) -> None:
        error = closed()
        try:
            async for frame in frames:
                if frame.event in (None, "message") and frame.data:
                    await self._take(frame.data, heard)
        except McpServerError as failure:
            error = failure.error
        except ValidationError:
            error = protocol_error(PARSE_ERROR, NOT_MCP)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return
        self.broken = True
        for request_id in tuple(self._pending):
            await self._fail(request_id, error, heard)
        heard.close()

    async def _take(self, data: bytes, heard: Incoming) -> None:
        message = jsonrpc_message_adapter.validate_json(data, by_name=False)
        answered = message.id if isinstance(message, (JSONRPCResponse, JSONRPCError)) else None
        if answered is not None and coerce_request_id(answered) in self._pending:
            self._await_no_answer(answered)
        await heard.send(SessionMessage(message))

    async def _say(self, said: Outgoing, post_url: httpx2.URL, heard: Incoming, tasks: TaskScope) -> None:
        replies: set[asyncio.Task[None]] = set()
        async for item in said:
            message = item.message
            is_reply = isinstance(message, (JSONRPCResponse, JSONRPCError))
            if is_reply and len(replies) >= _MAX_REPLIES:
                continue
            request_id = message.id if isinstance(message, JSONRPCRequest) else None
            if request_id is not None:
                self._await_answer(request_id)
            elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
                self._await_no_answer((message.params or {}).get("requestId", ""))
            body = message.model_dump_json(by_alias=True, exclude_unset=True).encode()
            posting = tasks.start(self._post(post_url, body, request_id, heard))
            if is_reply:
                replies.add(posting)
                posting.add_done_callback(replies.discard)
            if getattr(message, "method", None) in _IN_ORDER:
                await asyncio.wait([posting])

    async def _post(self, post_url: httpx2.URL, body: bytes, request_id: RequestId | None, heard: Incoming) -> None:
        headers = {"content-type": "application/json"}
        error: Json | None = None
        try:
            async with (
                asyncio.timeout(self._settings.connect_timeout_s),
                self._http.stream("POST", post_url, content=body, headers=headers) as reply,
            ):
                if not reply.is_success:
                    error = http_failure(reply.status_code)
                    self.broken = self.broken or reply.status_code in _SESSION_UNKNOWN
                await _skip(reply)
        except (httpx2.RequestError, TimeoutError) as failure:
            error, self.broken = error_object(failure), True
        if error is not None:
            await self._fail(request_id, error, heard)

    async def _fail(self, request_id: RequestId | None, error: Json, heard: Incoming) -> None:
        """Answer a request that still waits, instead of the server."""
        if request_id is None or request_id not in self._pending:
            return
        self._await_no_answer(request_id)
        refusal = JSONRPCError(jsonrpc="2.0", id=request_id, error=ErrorData(**wire_error(error)))
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await heard.send(SessionMessage(refusal))


async def _skip(reply: httpx2.Response) -> None:
    size = 0
    async for chunk in reply.aiter_raw():
        size += len(chunk)
        if size > _MAX_REPLY_BYTES:
            return
