"""What a test tells the MCP server to be, and what it sees of it. Values and one observable object; no server in it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from mcp.server.subscriptions import InMemorySubscriptionBus
from mcp_types import Tool

from attache_core.json_codec import Json
from attache_core.testing.mcp_sse import EventStream


@dataclass(frozen=True, slots=True)
class Fault:
    """What to do with a request instead of serving it.

    Over the transport `sse` an answer with status 200 is an event of the stream that holds the body; with `cut_off`,
    the stream breaks off in the middle of it.

    Attributes:
        hang: never answer.
        status, content_type, body: the answer.
        cut_off: announce more body than is sent, then close the connection.
        result: answer with this JSON-RPC result, whatever the protocol says of it.
        error: answer with this JSON-RPC error.
    """

    hang: bool = False
    status: int = 200
    content_type: str = "application/json"
    body: bytes = b""
    cut_off: bool = False
    result: Json | None = None
    error: Json | None = None


@dataclass(frozen=True, slots=True)
class McpServerOptions:
    """How a server is to be.

    Attributes:
        protocol: `modern` serves both generations; `legacy` only that with an `initialize` handshake.
        transport: `streamable_http`, or the older `sse`.
        path: of the MCP endpoint; the transport's usual one unless given.
        json_response: plain JSON answers instead of event streams.
        token: the bearer token without which every request is answered with 401; None for none.
        tools: more tools than the built-in ones; a call of one answers with its name and arguments.
        page_size: how many tools a page of the list has; 0 for all.
        faults: by JSON-RPC method, for all such requests; `RunningMcpServer.faults` can be changed later.
    """

    protocol: Literal["modern", "legacy"] = "modern"
    transport: Literal["streamable_http", "sse"] = "streamable_http"
    path: str = ""
    json_response: bool = False
    token: str | None = None
    tools: Sequence[Tool] = ()
    builtin: bool = True
    page_size: int = 0
    faults: Mapping[str, Fault] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """One JSON-RPC message that arrived, or an HTTP request without one (`method` is then the HTTP method)."""

    method: str
    params: Json
    headers: Mapping[str, str]
    id: int | str | None = None


class RunningMcpServer:
    """A server that runs, and what it has seen.

    Attributes:
        url: of the MCP endpoint.
        requests: everything that arrived, in order.
        faults: by JSON-RPC method; tests add and remove them.
        faults_once: likewise, but each serves for one request only.
        cancelled: names of tools whose call was cancelled while it ran.
        release: lets `slow` calls end.
        open_requests: HTTP requests being served now.
        event_streams: those that are open, of the transport `sse`, in the order of their opening.
    """

    def __init__(self, url: str, options: McpServerOptions) -> None:
        self.url = url
        self.requests: list[RecordedRequest] = []
        self.faults: dict[str, Fault] = dict(options.faults)
        self.faults_once: dict[str, Fault] = {}
        self.cancelled: list[str] = []
        self.release = asyncio.Event()
        self.open_requests = 0
        self.extra_tools = list(options.tools)
        self.event_streams: list[EventStream] = []
        self._news = asyncio.Event()
        self._bus = InMemorySubscriptionBus()

    @property
    def counts(self) -> Counter[str]:
        """How often each JSON-RPC method was asked for."""
        return Counter(request.method for request in self.requests)

    @property
    def calls(self) -> list[tuple[str, Json]]:
        """Tool calls that arrived: name and arguments."""
        return [
            (request.params["name"], request.params.get("arguments") or {})
            for request in self.requests
            if request.method == "tools/call"
        ]

    async def until(self, seen: Callable[[RunningMcpServer], bool]) -> None:
        """Wait at most 5 s for something that requests, or their cancellation, bring about."""
        async with asyncio.timeout(5):
            while not seen(self):
                self._news.clear()
                await self._news.wait()

    def changed(self) -> None:
        """Wake those who wait in `until`."""
        self._news.set()

    @property
    def bus(self) -> InMemorySubscriptionBus:
        """Where changes are announced to clients of the stateless protocol."""
        return self._bus
