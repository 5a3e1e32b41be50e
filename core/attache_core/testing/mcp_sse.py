"""The MCP server for tests over the older transport, HTTP with SSE, as the official SDK serves it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.sse import SseServerTransport

from attache_core.tools.task_scope import task_scope

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_MESSAGES_PATH = "/messages"


class EventStream:
    """An open event stream as others see it: they may write into it, and end it in the middle."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._ending = asyncio.Event()

    async def write(self, data: bytes) -> None:
        """Send these bytes."""
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    def end(self) -> None:
        """Break off, as if the client had gone: what is served thus is closed in order."""
        self._ending.set()

    async def receive(self) -> Message:
        """What the client sends, or that it has gone."""
        async with task_scope() as tasks:
            heard = tasks.start(_awaited(self._receive()))
            await asyncio.wait([heard, tasks.start(self._ending.wait())], return_when=asyncio.FIRST_COMPLETED)
            return heard.result() if heard.done() else {"type": "http.disconnect"}


async def _awaited(message: Awaitable[Message]) -> Message:
    return await message


class SseApp:
    """An ASGI application: a GET of `path` is the event stream, a POST of `/messages` takes messages."""

    def __init__(self, server: Server[Any], path: str) -> None:
        self._server = server
        self._path = path
        self._transport = SseServerTransport(_MESSAGES_PATH)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
        elif (scope["method"], scope["path"]) == ("GET", self._path):
            async with self._transport.connect_sse(scope, receive, send) as (incoming, outgoing):
                await self._server.run(incoming, outgoing, self._server.create_initialization_options())
        elif scope["path"] == _MESSAGES_PATH:
            await self._transport.handle_post_message(scope, receive, send)
        else:
            status = 405 if scope["path"] == self._path else 404
            await send({"type": "http.response.start", "status": status, "headers": []})
            await send({"type": "http.response.body", "body": b""})
