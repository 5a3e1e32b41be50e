"""The MCP servers of a worker process: sessions pooled over turns, tool lists remembered.

Knows which session serves which declaration, and when a session is replaced or closed; unaware of requests, items and
model-visible names. Sessions are kept apart by URL and credentials, so nobody is answered with another's rights.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

from attache_core.json_codec import Json
from attache_core.tools.call_errors import CONNECTION_CLOSED, protocol_error
from attache_core.tools.gateway_tool import CallResult, Report
from attache_core.tools.mcp.failure import McpServerError
from attache_core.tools.mcp.server import McpServer
from attache_core.tools.mcp.settings import McpSettings
from attache_core.tools.task_scope import TaskScope, task_scope

if TYPE_CHECKING:
    from attache_core.tools.mcp.session import McpSession, SessionMaker

_TALKATIVE_LOGGERS = ("httpx2", "httpcore2", "mcp.client", "mcp.shared", "client")


class McpServers:
    """Lists and calls tools of MCP servers. Made by `open_mcp_servers`."""

    def __init__(self, settings: McpSettings, tasks: TaskScope) -> None:
        self.settings = settings
        self._tasks = tasks
        self._sessions: dict[str, McpSession] = {}
        self._maker: SessionMaker | None = None
        self._loading = asyncio.Lock()

    async def load_client(self) -> None:
        """Load what sessions are made with, the SDK and TLS's trust store, as the first use of a server does too.

        It takes a second, in a thread, so that nobody but the caller waits for it.
        """
        await self._session_maker()

    def knows_tools(self, server: McpServer) -> bool:
        """Whether `list_tools` would answer without contacting the server."""
        session = self._sessions.get(server.key)
        return session is not None and session.usable and session.fresh_tools is not None

    async def list_tools(self, server: McpServer) -> tuple[Json, ...]:
        """The server's tools as `mcp_list_tools` items show them, in its order, names unique.

        A session that proves to be broken or expired is opened again, once.

        Raises:
            McpServerError: the server cannot be listed.
        """
        known = self._sessions.get(server.key)
        async with self._session(server) as session:
            try:
                return await session.tools()
            except McpServerError:
                if session is not known or session.usable:
                    raise
        async with self._session(server) as session:
            return await session.tools()

    async def call_tool(
        self, server: McpServer, name: str, arguments: Json, report: Report | None = None
    ) -> CallResult:
        """Call a tool of the server, at most once. A failure is a result; cancelling the caller cancels the call.

        No time limit but the caller's, which progress does not extend.
        """
        try:
            async with self._session(server) as session:
                return await session.call(name, arguments, report)
        except McpServerError as error:
            return CallResult(None, error.error)

    def close(self) -> None:
        """Let all sessions end; whoever opened this waits for them."""
        for session in self._sessions.values():
            session.close()

    @asynccontextmanager
    async def _session(self, server: McpServer) -> AsyncIterator[McpSession]:
        """The session with a server, opened if there is none that can be used, kept open as long as it is used."""
        new_session = await self._session_maker()
        session = self._sessions.get(server.key)
        if session is None or not session.usable:
            session = self._open(server, new_session)
        session.users += 1
        try:
            yield session
        finally:
            session.users -= 1
            if session.users == 0:
                self._release(server.key, session)

    def _open(self, server: McpServer, new_session: SessionMaker) -> McpSession:
        replaced = self._sessions.pop(server.key, None)
        if replaced is not None and replaced.users == 0:
            replaced.close()
        if len(self._sessions) >= self.settings.max_sessions:
            self._make_room()
        session = new_session(server)
        self._sessions[server.key] = session
        self._tasks.start(session.own(lambda: self._drop(server.key, session)))
        return session

    async def _session_maker(self) -> SessionMaker:
        if self._maker is not None:
            return self._maker
        async with self._loading:
            if self._maker is None:
                self._maker = await asyncio.to_thread(_load_session_maker, self.settings)
            return self._maker

    def _make_room(self) -> None:
        idle = [(session.idle_since, key) for key, session in self._sessions.items() if session.users == 0]
        if not idle:
            message = f"The gateway has {len(self._sessions)} MCP sessions in use, its mcp.max_sessions."
            raise McpServerError(protocol_error(CONNECTION_CLOSED, message))
        self._sessions.pop(min(idle)[1]).close()

    def _release(self, key: str, session: McpSession) -> None:
        """Nobody uses it now: close it when it is of no more use, or when nobody has come back for a while."""
        session.idle_since = asyncio.get_running_loop().time()
        if self._sessions.get(key) is not session or not session.usable:
            self._drop(key, session)
            session.close()
        elif session.idle_timer is None:
            self._watch_idleness(key, session)

    def _watch_idleness(self, key: str, session: McpSession) -> None:
        due = session.idle_since + self.settings.idle_timeout_s
        session.idle_timer = asyncio.get_running_loop().call_at(due, self._close_if_idle, key, session, due)

    def _close_if_idle(self, key: str, session: McpSession, due: float) -> None:
        session.idle_timer = None
        if session.users:
            return
        if session.idle_since + self.settings.idle_timeout_s > due:
            self._watch_idleness(key, session)
        else:
            self._drop(key, session)
            session.close()

    def _drop(self, key: str, session: McpSession) -> None:
        if self._sessions.get(key) is session:
            del self._sessions[key]


def _load_session_maker(settings: McpSettings) -> SessionMaker:
    # Imported here because of what it costs: a process starts without the SDK, and many never need it.
    from attache_core.tools.mcp.session import session_maker  # noqa: PLC0415

    return session_maker(settings)


@asynccontextmanager
async def open_mcp_servers(settings: McpSettings) -> AsyncIterator[McpServers]:
    """The servers of a process, for as long as the block lasts; sessions are closed with it, bounded in time."""
    with _quiet():
        async with task_scope() as tasks:
            servers = McpServers(settings, tasks)
            try:
                yield servers
            finally:
                servers.close()
                await tasks.settle(settings.close_timeout_s * 2)


@contextmanager
def _quiet() -> Iterator[None]:
    """The SDK and its HTTP client log URLs, arguments and answers, any of which may hold a credential."""
    loggers = [logging.getLogger(name) for name in _TALKATIVE_LOGGERS]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
