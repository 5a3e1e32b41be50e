"""One connection: a request is sent, its response is read, then the next may be sent.

Knows HTTP/1.1 framing by way of httptools (llhttp); unaware of who made the connection and of what becomes of it.
Invariants: no more than `MAX_UNREAD_BYTES` and one read of the socket wait for the reader, because the connection stops
reading then; whatever a server sends around a body is bounded; a response that is not read to its end ends the
connection, so nothing of it can be taken for the next. Source: RFC 9112.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

import httptools

MAX_UNREAD_BYTES = 1 << 20
"""Body that may wait to be read."""

MAX_HEAD_BYTES = 100 * 1024
"""Length of a response's head, and of what else is no body; a chunk's framing may take 16 bytes for each of it more."""

_FRAMING_BYTES = 16


class BrokenOffError(Exception):
    """A connection ended, or what came over it is not HTTP, before the response was complete."""


@dataclass(frozen=True, slots=True)
class Http1Response:
    """A response whose head has come.

    Attributes:
        headers: by lower-case name; values that came under one name are joined by commas.
        body: read it to its end, or close it.
    """

    status: int
    headers: Mapping[str, str]
    body: Http1Body


@dataclass(slots=True)
class _Incoming:
    """What has come of the response to one request."""

    head: asyncio.Future[None]
    without_body: bool
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    in_body: bool = False
    ended: bool = False
    keep_alive: bool = False
    failure: BrokenOffError | None = None
    chunks: list[bytes] = field(default_factory=list)
    unread_bytes: int = 0
    body_bytes: int = 0
    fed_bytes: int = 0

    @property
    def is_oversized(self) -> bool:
        return self.fed_bytes - self.body_bytes > MAX_HEAD_BYTES + _FRAMING_BYTES * self.body_bytes

    @property
    def ends_with_connection(self) -> bool:
        return self.in_body and not self.headers.keys() & {"content-length", "transfer-encoding"}


class Http1Connection(asyncio.Protocol):
    """A connection, made by the loop's `create_connection` and its like, for one request at a time.

    Args:
        released: called when a response was read to its end and another request may follow.
    """

    def __init__(self, released: Callable[[Http1Connection], None]) -> None:
        self._released = released
        self._transport: asyncio.Transport
        self._parser = httptools.HttpResponseParser(self)
        self._incoming: _Incoming | None = None
        self._paused = False
        self._changed = asyncio.Event()

    @property
    def reusable(self) -> bool:
        """Whether another request may be sent: the last response is complete, and nothing came that nobody asked for.

        A server that closes an idle connection is seen even when the event loop has not been told yet.
        """
        return self._incoming is None and not self._transport.is_closing() and not self._is_readable()

    async def send(self, request: bytes, *, is_head: bool = False) -> Http1Response:
        """Send a whole request; returns when the response's head has come. Cancelled before that, the connection ends.

        Args:
            is_head: whether the request's method is HEAD: its response has no body, whatever it says.

        Raises:
            BrokenOffError: no response came; also while its body is read.
        """
        head = asyncio.get_running_loop().create_future()
        incoming = self._incoming = _Incoming(head, without_body=is_head)
        if self._transport.is_closing():
            raise BrokenOffError("the connection was closed")
        self._transport.write(request)
        try:
            await head
        except BaseException:
            self.close()
            raise
        return Http1Response(incoming.status, incoming.headers, Http1Body(self, incoming))

    def close(self) -> None:
        """End the connection at once; a response that is not complete breaks off."""
        self._fail("the connection was closed")

    # The event loop calls these.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but ancestry

    def data_received(self, data: bytes) -> None:
        incoming = self._incoming
        if incoming is None or incoming.ended:
            self.close()  # what nobody asked for
            return
        incoming.fed_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade, UnicodeDecodeError):
            self._fail("what came is not a response of HTTP/1.1")
        if incoming.is_oversized:
            self._fail(f"more than {MAX_HEAD_BYTES} bytes came that are no body")
        if incoming.unread_bytes >= MAX_UNREAD_BYTES and not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        incoming = self._incoming
        if incoming is not None and exc is None and incoming.ends_with_connection and incoming.failure is None:
            self._end(incoming)
        self._fail("the connection was closed")
        del self._parser  # it leads back here: without this, both would wait for the collector of cycles

    # httptools calls these.

    def on_message_begin(self) -> None:
        if self._incoming is not None and self._incoming.ended:
            self._incoming.keep_alive = False  # what nobody asked for came with the response

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._incoming is None or self._incoming.in_body:
            return  # a trailer
        key, text = name.decode("ascii").lower(), value.decode("utf-8", "surrogateescape")
        headers = self._incoming.headers
        headers[key] = f"{headers[key]}, {text}" if key in headers else text

    def on_headers_complete(self) -> None:
        incoming, status = self._incoming, self._parser.get_status_code()
        if incoming is None or incoming.in_body or status < 200:
            return
        incoming.status = status
        incoming.in_body = True
        if not incoming.head.done():
            incoming.head.set_result(None)
        if incoming.without_body:
            self._end(incoming)  # the parser waits for a body, so this was the connection's last response

    def on_body(self, data: bytes) -> None:
        if self._incoming is not None and not self._incoming.ended:
            self._incoming.chunks.append(data)
            self._incoming.unread_bytes += len(data)
            self._incoming.body_bytes += len(data)
            self._changed.set()

    def on_message_complete(self) -> None:
        incoming = self._incoming
        if incoming is None:
            return
        if not incoming.in_body:
            incoming.headers.clear()  # an interim response (1xx): the final one follows
        elif not incoming.ended:
            incoming.keep_alive = self._parser.should_keep_alive()
            self._end(incoming)

    # The body calls these.

    async def read(self, incoming: _Incoming) -> bytes:
        """Body that has come, as soon as there is some; empty at its end."""
        while not incoming.chunks:
            if incoming.failure is not None:
                raise incoming.failure
            if incoming.ended:
                return b""
            self._changed.clear()
            await self._changed.wait()
        data = incoming.chunks[0] if len(incoming.chunks) == 1 else b"".join(incoming.chunks)
        incoming.chunks = []
        incoming.unread_bytes = 0
        if self._paused and not self._transport.is_closing():
            self._paused = False
            self._transport.resume_reading()
        return data

    def release(self, incoming: _Incoming) -> None:
        """Nobody reads on: the connection ends, unless the response has, whole, and left it open."""
        if self._incoming is not incoming:
            return
        self._incoming = None
        incoming.ended = True
        incoming.chunks.clear()
        self._changed.set()
        if incoming.keep_alive and not self._paused and self._transport.get_write_buffer_size() == 0:
            self._released(self)
        else:
            self.close()

    def _end(self, incoming: _Incoming) -> None:
        incoming.ended = True
        self._changed.set()

    def _fail(self, reason: str) -> None:
        incoming = self._incoming
        if incoming is not None and not incoming.ended and incoming.failure is None:
            incoming.failure = BrokenOffError(reason)
            if not incoming.head.done():
                incoming.head.set_exception(incoming.failure)
            self._changed.set()
        self._transport.abort()

    def _is_readable(self) -> bool:
        socket = self._transport.get_extra_info("socket")
        poll = select.poll()
        poll.register(socket.fileno(), select.POLLIN)
        return bool(poll.poll(0))


class Http1Body:
    """The body of one response: an asynchronous iterator of bytes, never empty ones; `aclose` drops the rest.

    Raises:
        BrokenOffError: while iterating, when the connection ended before the body did.
    """

    def __init__(self, connection: Http1Connection, incoming: _Incoming) -> None:
        self._connection = connection
        self._incoming = incoming

    def __aiter__(self) -> Http1Body:
        return self

    async def __anext__(self) -> bytes:
        data = await self._connection.read(self._incoming)
        if not data:
            await self.aclose()
            raise StopAsyncIteration
        return data

    async def aclose(self) -> None:
        """Nobody wants the rest; after the end, no change."""
        self._connection.release(self._incoming)
