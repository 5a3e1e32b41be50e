"""HTTP in front of the SDK's server: records every request, and misbehaves where it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from attache_core import json_codec
from attache_core.testing.mcp_observed import Fault, McpServerOptions, RecordedRequest, RunningMcpServer
from attache_core.testing.mcp_sse import EventStream, Message, Receive, Scope, Send

Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]


class Recorder:
    """The outermost ASGI application: records, misbehaves, and otherwise hands over to the SDK."""

    def __init__(self, inner: Asgi, running: RunningMcpServer, options: McpServerOptions) -> None:
        self._inner = inner
        self._running = running
        self._options = options
        self._serving: set[asyncio.Task[Any]] = set()
        self.started = asyncio.Event()

    def abandon(self) -> None:
        """Give up what is being served, so that the server can end."""
        for stream in self._running.event_streams:
            stream.end()
        for task in self._serving:
            task.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._inner(scope, receive, self._noticing_start(send))
            return
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        self._running.open_requests += 1
        try:
            await self._serve(scope, receive, send)
        finally:
            self._serving.discard(task)
            self._running.open_requests -= 1
            self._running.changed()

    def _noticing_start(self, send: Send) -> Send:
        async def noticing(message: Message) -> None:
            await send(message)
            self.started.set()

        return noticing

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        body = await _whole_body(receive) if scope["method"] == "POST" else b""
        request = _recorded(scope["method"], headers, body)
        self._running.requests.append(request)
        self._running.changed()
        fault = self._fault(request)
        if fault is None and self._options.transport == "sse" and request.method == "GET":
            await self._serve_events(scope, receive, send)
        elif fault is None:
            await self._inner(scope, _again(body, receive), send)
        elif fault.hang:
            await _until_disconnected(receive)
        elif self._running.event_streams and fault.status == 200:
            await _answer(Fault(status=202), request, send)
            await self._tell(fault, request)
        else:
            await _answer(fault, request, send)

    async def _serve_events(self, scope: Scope, receive: Receive, send: Send) -> None:
        """It is ended rather than cancelled, because the SDK's server would leave its own streams open."""
        serving = asyncio.current_task()
        assert serving is not None
        self._serving.discard(serving)
        stream = EventStream(receive, send)
        self._running.event_streams.append(stream)
        try:
            await self._inner(scope, stream.receive, send)
        finally:
            self._running.event_streams.remove(stream)

    async def _tell(self, fault: Fault, request: RecordedRequest) -> None:
        """Answer in the event stream that was opened last."""
        stream = self._running.event_streams[-1]
        event = b"event: message\r\ndata: " + _body(fault, request)
        await stream.write(event if fault.cut_off else event + b"\r\n\r\n")
        if fault.cut_off:
            stream.end()

    def _fault(self, request: RecordedRequest) -> Fault | None:
        token = self._options.token
        if token is not None and request.headers.get("authorization") != f"Bearer {token}":
            return Fault(status=401, body=b'{"error": "invalid_token"}')
        chosen = self._running.faults_once.pop(request.method, None) or self._running.faults.get(request.method)
        if chosen is not None:
            return chosen
        version = request.headers.get("mcp-protocol-version")
        if self._options.protocol == "legacy" and version not in (None, *HANDSHAKE_PROTOCOL_VERSIONS):
            return Fault(status=400, content_type="text/plain", body=b"unsupported protocol version")
        return None


def _recorded(http_method: str, headers: Mapping[str, str], body: bytes) -> RecordedRequest:
    message = json_codec.decode(body) if body else {}
    method = message.get("method", http_method)
    return RecordedRequest(method, message.get("params") or {}, headers, message.get("id"))


async def _whole_body(receive: Receive) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return body


def _again(body: bytes, receive: Receive) -> Receive:
    """A receive channel that begins with a body that was read already."""
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return first.pop() if first else await receive()

    return next_message


async def _until_disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _body(fault: Fault, request: RecordedRequest) -> bytes:
    for member in ("result", "error"):
        if (value := getattr(fault, member)) is not None:
            return json_codec.encode({"jsonrpc": "2.0", "id": request.id, member: value})
    return fault.body


async def _answer(fault: Fault, request: RecordedRequest, send: Send) -> None:
    body = _body(fault, request)
    headers = [(b"content-type", fault.content_type.encode())]
    if fault.cut_off:
        headers.append((b"content-length", str(len(body) + 1000).encode()))
    elif 300 <= fault.status < 400:
        headers.append((b"location", body))
    await send({"type": "http.response.start", "status": fault.status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": fault.cut_off})
