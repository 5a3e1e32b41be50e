"""One open session with one MCP server, shared by all turns that declare this server with these credentials.

A session lives in one task of the pool: opened, held and closed there, because the SDK's cancel scopes must not leave
the task that entered them. Callers only send requests through it, each from its own task, several at once; cancelling
a caller cancels its request, tells the server so, and leaves the session as it was.

The tool list belongs to the session: a server that had to be connected anew may well offer other tools.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial

from mcp import Client
from mcp.client.session import IncomingMessage
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.dispatcher import ProgressFnT
from mcp_types import (
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    InputRequiredResult,
    PaginatedRequestParams,
    ToolListChangedNotification,
)
from mcp_types.methods import validate_server_result
from mcp_types.version import LATEST_MODERN_VERSION
from pydantic import TypeAdapter

from attache_core.json_codec import Json
from attache_core.tools.call_errors import INTERNAL_ERROR, protocol_error
from attache_core.tools.gateway_tool import CallProgress, CallResult, Report
from attache_core.tools.mcp.connection import Connection, Connector
from attache_core.tools.mcp.failure import McpServerError, closed
from attache_core.tools.mcp.results import call_result, listed_tool
from attache_core.tools.mcp.sdk_errors import failure_of
from attache_core.tools.mcp.server import McpServer
from attache_core.tools.mcp.settings import McpSettings
from attache_core.tools.task_scope import task_scope

_CALL_RESULT: TypeAdapter[CallToolResult | InputRequiredResult] = TypeAdapter(CallToolResult | InputRequiredResult)


class McpSession:
    """A session and the tool list that came over it.

    Attributes:
        users: requests and listings that need it now.
        idle_since: loop time at which it was last used.
        idle_timer: runs while it may have to be closed for idleness.
    """

    def __init__(self, server: McpServer, connector: Connector) -> None:
        self.users = 0
        self.idle_since = asyncio.get_running_loop().time()
        self.idle_timer: asyncio.TimerHandle | None = None
        self._server = server
        self._connector = connector
        self._settings = connector.settings
        self._settled = asyncio.Event()
        self._closing = asyncio.Event()
        self._connection: Connection | None = None
        self._failure: McpServerError | None = None
        self._listing = asyncio.Lock()
        self._tools: tuple[Json, ...] | None = None
        self._tools_expire_at = 0.0

    @property
    def usable(self) -> bool:
        """Whether a new caller should use it; while it is still being opened, yes."""
        broken = self._connection is not None and self._connection.broken
        return not (self._closing.is_set() or self._failure is not None or broken)

    @property
    def fresh_tools(self) -> tuple[Json, ...] | None:
        """The tool list in its public shape, unless it is unknown or too old."""
        return self._tools if asyncio.get_running_loop().time() < self._tools_expire_at else None

    def close(self) -> None:
        """Let the owner task end; requests that still run fail."""
        self._closing.set()
        if self.idle_timer is not None:
            self.idle_timer.cancel()

    async def own(self, on_end: Callable[[], None]) -> None:
        """The whole life of the session, in one task. Does not raise: callers learn of a failure from their calls."""
        try:
            async with (
                task_scope() as tasks,
                asyncio.timeout(self._settings.connect_timeout_s) as opening,
                self._connector.connected(self._server, self._on_message, tasks) as connection,
            ):
                opening.reschedule(None)
                self._connection = connection
                self._settled.set()
                tasks.start(self._watch_tools(connection.client))
                await self._closing.wait()
        except Exception as error:  # noqa: BLE001 - the edge to the SDK, which raises groups of anything
            self._failure = failure_of(error, self._server.credentials)
        finally:
            self._failure = self._failure or McpServerError(closed())
            self._settled.set()
            on_end()

    async def tools(self) -> tuple[Json, ...]:
        """The server's tools in their public shape, listed again only when they are not known or too old.

        Raises:
            McpServerError: the server cannot be reached, fails, or lists more than the settings allow.
        """
        async with self._listing:
            fresh = self.fresh_tools
            if fresh is not None:
                return fresh
            self._tools = None
            self._tools_expire_at = asyncio.get_running_loop().time() + self._settings.list_ttl_s
            try:
                async with self._sdk() as client, asyncio.timeout(self._settings.connect_timeout_s):
                    tools = await self._list(client)
            except McpServerError:
                self._forget_tools()
                raise
            # A change that was announced meanwhile has set the expiry back, so this list serves its caller only.
            self._tools = tools
            if self._connection is not None and self._connection.calls is not None:
                self._connection.calls.learn(tools)
            return tools

    async def call(self, name: str, arguments: Json, report: Report | None = None) -> CallResult:
        """Call a tool, once: a request that may have been sent is never sent again. No time limit but the caller's.

        Raises:
            McpServerError: the result did not come back, or the server refused the call.
        """
        async with self._sdk() as client:
            calls = None if self._connection is None else self._connection.calls
            if calls is not None:
                result = _parsed(await calls.call(name, arguments, client.protocol_version, report))
            else:
                request = CallToolRequest(params=CallToolRequestParams(name=name, arguments=arguments))
                on_progress = None if report is None else _progress_to(report)
                result = await client.session.send_request(request, _CALL_RESULT, progress_callback=on_progress)
        if isinstance(result, InputRequiredResult):
            message = "The tool asks for input from a user, which the gateway cannot give."
            raise McpServerError(protocol_error(INTERNAL_ERROR, message))
        return call_result(result, self._settings.max_output_bytes, self._server.credentials.redact_values)

    @asynccontextmanager
    async def _sdk(self) -> AsyncIterator[Client]:
        """The open client; whatever is raised inside is mapped."""
        await self._settled.wait()
        if self._failure is not None or self._connection is None:
            raise McpServerError(self._failure.error if self._failure is not None else closed())
        try:
            yield self._connection.client
        except Exception as error:  # noqa: BLE001 - the edge to the SDK, which raises anything at odd answers
            raise failure_of(error, self._server.credentials) from None

    async def _list(self, client: Client) -> tuple[Json, ...]:
        tools: list[Json] = []
        cursor: str | None = None
        for _ in range(self._settings.max_list_pages):
            params = PaginatedRequestParams(cursor=cursor) if cursor is not None else None
            page = await client.session.list_tools(params=params)
            redact = self._server.credentials.redact_values
            tools += [listed_tool(tool, self._settings.max_tool_bytes, redact) for tool in page.tools]
            if len(tools) > self._settings.max_listed_tools:
                raise _too_much("tools", "max_listed_tools", self._settings.max_listed_tools)
            cursor = page.next_cursor
            if cursor is None:
                return _first_of_each_name(tools)
        raise _too_much("pages of tools", "max_list_pages", self._settings.max_list_pages)

    async def _on_message(self, message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._forget_tools()

    async def _watch_tools(self, client: Client) -> None:
        """Servers of the stateless protocol tell of changes only to who listens; where they do not, the list ages."""
        tools = client.server_capabilities.tools
        if client.session.initialize_result is not None or tools is None or not tools.list_changed:
            return
        try:
            async with client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    self._forget_tools()
                self._forget_tools()
        except SubscriptionLost:
            self._forget_tools()  # a change may have been missed
        except Exception:  # noqa: BLE001 - the edge to the SDK; without a listener, the list ages
            return

    def _forget_tools(self) -> None:
        self._tools = None
        self._tools_expire_at = 0.0


def _progress_to(report: Report) -> ProgressFnT:
    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        report(CallProgress(progress, total, message))

    return on_progress


SessionMaker = Callable[[McpServer], McpSession]


def session_maker(settings: McpSettings) -> SessionMaker:
    """What makes sessions with these settings. They share the trust store of TLS, which is read here, once."""
    return partial(McpSession, connector=Connector(settings))


def _parsed(result: Json) -> CallToolResult | InputRequiredResult:
    """The result of a call by the protocol of direct calls. Raises ValidationError when it is not one."""
    validate_server_result("tools/call", LATEST_MODERN_VERSION, result)
    return _CALL_RESULT.validate_python(result, by_name=False)


def _first_of_each_name(tools: Sequence[Json]) -> tuple[Json, ...]:
    named: dict[str, Json] = {}
    for tool in tools:
        named.setdefault(tool["name"], tool)
    return tuple(named.values())


def _too_much(what: str, setting: str, limit: int) -> McpServerError:
    message = f"The MCP server lists more than {limit} {what}, the gateway's mcp.{setting}."
    return McpServerError(protocol_error(INTERNAL_ERROR, message))
