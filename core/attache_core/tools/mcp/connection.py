"""Opens the connection of one session over the transport that the server speaks.

A server that is only a URL may speak streamable HTTP or the older HTTP with SSE. The former is tried first; a server
that answers its handshake with 400, 404 or 405, and with no JSON-RPC, is asked for an event stream. What was found out
is remembered. Unaware of sessions, lists and calls. Source: MCP specification, "Transports", "Backwards compatibility".
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Protocol

import httpx2
from mcp import Client
from mcp.client.session import MessageHandlerFnT
from mcp.client.streamable_http import streamable_http_client
from mcp_types import Implementation
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from attache_core.tools.mcp.addresses import resolve
from attache_core.tools.mcp.direct_calls import DirectCalls
from attache_core.tools.mcp.failure import TransportNotSpokenError
from attache_core.tools.mcp.http_sse import SseWire
from attache_core.tools.mcp.server import McpServer
from attache_core.tools.mcp.settings import McpSettings
from attache_core.tools.mcp.wire import ServerWire, open_client
from attache_core.tools.outbound.policy import Endpoint
from attache_core.tools.task_scope import TaskScope

_CLIENT_INFO = Implementation(name="attache", version=version("agentic-attache"))


class Wire(Protocol):
    """What carries the messages of a session."""

    broken: bool


@dataclass(frozen=True, slots=True)
class Connection:
    """An open connection.

    Attributes:
        client: the SDK's.
        wire: what carries its messages.
        calls: what calls tools past the client, where the server's protocol allows it.
    """

    client: Client
    wire: Wire
    calls: DirectCalls | None = None

    @property
    def broken(self) -> bool:
        """Whether a later use should open another."""
        return self.wire.broken or (self.calls is not None and self.calls.broken)


@dataclass(frozen=True, slots=True)
class Connector:
    """Opens connections; what all of a process share.

    Attributes:
        sse_servers: the keys of servers that were found to speak only HTTP with SSE, as many as there may be sessions.
    """

    settings: McpSettings
    tls: ssl.SSLContext = field(default_factory=httpx2.create_ssl_context)
    sse_servers: dict[str, None] = field(default_factory=dict)

    @asynccontextmanager
    async def connected(
        self, server: McpServer, on_message: MessageHandlerFnT, tasks: TaskScope
    ) -> AsyncIterator[Connection]:
        """A connection after its handshake, open as long as the block lasts. No time limit but the caller's.

        Raises:
            Exception: what the SDK raises, or an `McpServerError`; see `sdk_errors`.
        """
        endpoint = await resolve(server, self.settings)
        async with AsyncExitStack() as stack:
            yield await _Opening(self, server, endpoint, on_message, tasks, stack).connection()

    def remember(self, server: McpServer) -> None:
        """The server speaks only HTTP with SSE."""
        self.sse_servers[server.key] = None
        if len(self.sse_servers) > self.settings.max_sessions:
            del self.sse_servers[next(iter(self.sse_servers))]


@dataclass(frozen=True, slots=True)
class _Opening:
    connector: Connector
    server: McpServer
    endpoint: Endpoint
    on_message: MessageHandlerFnT
    tasks: TaskScope
    stack: AsyncExitStack

    async def connection(self) -> Connection:
        """Over the transport that was declared or is remembered, else over the one that the server speaks."""
        if self.server.transport == "sse":
            return await self._over_sse()
        known = self.connector.sse_servers
        if self.server.key in known:
            try:
                return await self._over_sse()
            except TransportNotSpokenError:
                known.pop(self.server.key, None)
        wire = ServerWire(self.endpoint, self.connector.settings, self.connector.tls, self.tasks)
        try:
            return await self._over_http(wire)
        except Exception as error:
            if not wire.refused_handshake or self.server.transport != "auto":
                raise
            return await self._over_sse_instead(error)

    async def _over_sse_instead(self, error: Exception) -> Connection:
        try:
            connection = await self._over_sse()
        except TransportNotSpokenError:
            raise error from None
        self.connector.remember(self.server)
        return connection

    async def _over_http(self, wire: ServerWire) -> Connection:
        settings = self.connector.settings
        async with AsyncExitStack() as stack:
            http = await stack.enter_async_context(open_client(self.server, wire, settings))
            transport = streamable_http_client(
                self.server.url, http_client=http, max_sse_event_size=settings.max_message_bytes
            )
            client = Client(transport, cache=None, client_info=_CLIENT_INFO, message_handler=self.on_message)
            opened = await stack.enter_async_context(client)
            calls = None
            if opened.protocol_version in MODERN_PROTOCOL_VERSIONS:
                calls = DirectCalls(self.server, self.endpoint, settings, self.connector.tls, _CLIENT_INFO)
                stack.callback(calls.close)
            self.stack.push_async_exit(stack.pop_all())
        return Connection(opened, wire, calls)

    async def _over_sse(self) -> Connection:
        wire = SseWire(self.server, self.endpoint, self.connector.settings, self.connector.tls)
        # Servers of this transport know nothing of later protocols, so they are not asked about them.
        client = Client(
            wire.connected(), mode="legacy", cache=None, client_info=_CLIENT_INFO, message_handler=self.on_message
        )
        return Connection(await self.stack.enter_async_context(client), wire)
