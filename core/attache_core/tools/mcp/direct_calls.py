"""Calls of tools on servers of the stateless protocol: each is one POST and what comes back for it.

What the SDK does for a call on the older protocol, which has sessions, requests of the server's own and streams that
are resumed, nobody asks for here, and it takes many times the CPU of the call itself. The handshake, listings and
subscriptions stay the SDK's. Knows HTTP and JSON-RPC; unaware of what results mean. A request is sent once; who is
cancelled closes its connection, which is how this protocol cancels. Source: MCP specification 2026-07-28, "Streamable
HTTP".
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from itertools import count

import httpx2
from mcp import MCPError
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    encode_header_value,
    mcp_param_headers,
    x_mcp_header_map,
)
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    PROTOCOL_VERSION_META_KEY,
    Implementation,
    ProgressNotificationParams,
)
from pydantic import ValidationError

from attache_core import json_codec
from attache_core.events.sse import SseDecoder
from attache_core.http1 import BrokenOffError, Http1Request, Http1Response
from attache_core.json_codec import Json
from attache_core.tools.call_errors import PARSE_ERROR, protocol_error
from attache_core.tools.gateway_tool import CallProgress, Report
from attache_core.tools.mcp.failure import NOT_MCP, McpServerError, closed, http_failure, too_large, unreachable
from attache_core.tools.mcp.json_rpc import is_answer, is_refusal, message_of
from attache_core.tools.mcp.server import McpServer
from attache_core.tools.mcp.settings import McpSettings
from attache_core.tools.mcp.wire import KEEPALIVE_S
from attache_core.tools.outbound.pinned_pool import pinned_pool
from attache_core.tools.outbound.policy import Endpoint

_METHOD = "tools/call"
_OTHER_CONNECTIONS = 2
"""The SDK's own: one that listens for changes, one for the handshake and listings."""


class DirectCalls:
    """Calls tools of one server.

    Attributes:
        broken: a call failed below HTTP: a later use should open another session.
    """

    def __init__(
        self, server: McpServer, endpoint: Endpoint, settings: McpSettings, tls: ssl.SSLContext, client: Implementation
    ) -> None:
        self.broken = False
        self._max_bytes = settings.max_message_bytes
        connections = max(1, settings.max_connections_per_session - _OTHER_CONNECTIONS)
        self._slots = asyncio.Semaphore(connections)
        self._pool = pinned_pool(
            endpoint, tls, connect_timeout_s=settings.connect_timeout_s, max_idle=connections, idle_s=KEEPALIVE_S
        )
        url = httpx2.URL(server.url)
        self._target = url.raw_path.decode()
        self._headers = {
            "user-agent": f"{client.name}/{client.version}",
            "host": url.netloc.decode(),
            **server.credentials.reveal(),
            "accept": "application/json, text/event-stream",
            "accept-encoding": "identity",  # a compressed answer could be small on the wire and huge in memory
            "content-type": "application/json",
            MCP_METHOD_HEADER: _METHOD,
        }
        self._client = client.model_dump(by_alias=True, mode="json", exclude_none=True)
        self._ids = count()
        self._mirrored: dict[str, dict[tuple[str, ...], str]] = {}

    def learn(self, tools: Sequence[Json]) -> None:
        """Take a listing, in its public shape: some tools want arguments repeated in headers (`x-mcp-header`)."""
        maps = ((tool["name"], x_mcp_header_map(tool["input_schema"])) for tool in tools)
        self._mirrored = {name: mirrored for name, mirrored in maps if mirrored}

    async def call(self, name: str, arguments: Json, protocol_version: str, report: Report | None = None) -> Json:
        """The result of a call, as the server gave it. No time limit but the caller's.

        With `report` the server is asked to tell how far the call is.

        Raises:
            McpServerError: no result came back.
            MCPError: the server refused the call.
        """
        request_id = f"call-{next(self._ids)}"
        request = self._request(request_id, name, arguments, protocol_version, with_progress=report is not None)
        try:
            async with self._slots:
                response = await self._pool.send(request)
                async with aclosing(response.body):
                    answer = await self._answer(response, request_id, report)
        except OSError:
            self.broken = True
            raise McpServerError(unreachable()) from None
        except BrokenOffError:
            self.broken = True
            raise McpServerError(closed()) from None
        return _result(answer)

    def close(self) -> None:
        """End what still runs."""
        self._pool.close()

    def _request(
        self, request_id: str, name: str, arguments: Json, protocol_version: str, *, with_progress: bool
    ) -> Http1Request:
        meta: Json = {
            PROTOCOL_VERSION_META_KEY: protocol_version,
            CLIENT_INFO_META_KEY: self._client,
            CLIENT_CAPABILITIES_META_KEY: {},
        }
        if with_progress:
            meta["progressToken"] = request_id
        params = {"name": name, "arguments": arguments, "_meta": meta}
        message = {"jsonrpc": "2.0", "id": request_id, "method": _METHOD, "params": params}
        headers = {
            **self._headers,
            MCP_PROTOCOL_VERSION_HEADER: protocol_version,
            MCP_NAME_HEADER: encode_header_value(name),
            **mcp_param_headers(self._mirrored.get(name, {}), arguments),
        }
        return Http1Request("POST", self._target, headers, json_codec.encode(message))

    async def _answer(self, response: Http1Response, request_id: str, report: Report | None) -> Json:
        """The JSON-RPC answer to the request."""
        content_type = response.headers.get("content-type", "").lower()
        body = _bounded(response, self._max_bytes)
        if response.status == 200 and content_type.startswith("text/event-stream"):
            return await _streamed_answer(body, request_id, self._max_bytes, report)
        content = b"".join([chunk async for chunk in body])
        message = message_of(content) if content_type.startswith("application/json") else None
        if message is not None and (
            (response.status == 200 and is_answer(message, request_id))
            or (response.status >= 400 and is_refusal(message))
        ):
            return message
        if response.status in (200, 202):
            raise McpServerError(protocol_error(PARSE_ERROR, NOT_MCP))
        raise McpServerError(http_failure(response.status))


async def _bounded(response: Http1Response, max_bytes: int) -> AsyncIterator[bytes]:
    size = 0
    async for chunk in response.body:
        size += len(chunk)
        if size > max_bytes:
            raise McpServerError(too_large())
        yield chunk


async def _streamed_answer(body: AsyncIterator[bytes], request_id: str, max_bytes: int, report: Report | None) -> Json:
    """The first event that is an answer. Of progress that has come before it at once, the latest is reported."""
    decoder = SseDecoder(max_line_bytes=max_bytes)
    async for chunk in body:
        progress: object = None
        for frame in decoder.feed(chunk):
            if frame.event not in (None, "message") or not frame.data:
                continue
            message = message_of(frame.data)
            if message is None:
                raise McpServerError(protocol_error(PARSE_ERROR, NOT_MCP))
            if is_answer(message, request_id):
                return message
            if message.get("method") == "notifications/progress":
                progress = message.get("params")
        if report is not None and progress is not None:
            _report_progress(progress, report)
    raise McpServerError(closed())


def _report_progress(params: object, report: Report) -> None:
    try:
        told = ProgressNotificationParams.model_validate(params)
    except ValidationError:
        return  # the call goes on without
    report(CallProgress(told.progress, told.total, told.message))


def _result(answer: Json) -> Json:
    if is_refusal(answer):
        error = answer["error"]
        raise MCPError(error["code"], error["message"], error.get("data"))
    result = answer.get("result")
    if not isinstance(result, dict) or "error" in answer:
        raise McpServerError(protocol_error(PARSE_ERROR, NOT_MCP))
    return result
