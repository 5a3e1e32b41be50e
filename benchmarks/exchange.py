"""One client connection of the load generator: sends a request, reads its response, counts its events.

Unaware of loads and of clocks other than the one given: it tells a listener when the first event was complete and when
the response was. HTTP/1.1 only (RFC 9112), responses parsed by httptools; an event ends at an empty line, wherever the
network cut it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import cast
from urllib.parse import urlsplit

import httptools


@dataclass(frozen=True, slots=True)
class Exchanged:
    """One response.

    Attributes:
        status: 0 when the connection was lost before the response was complete.
        events: how many events its body had; 0 for JSON.
        first_event_s: from sending to the end of the first event, or of the body when there is none.
        total_s: from sending to the end of the body.
        body: empty unless the connection keeps bodies.
    """

    status: int
    events: int
    first_event_s: float
    total_s: float
    body: bytes


class EventCounter:
    """Counts the empty lines that end server-sent events, over any cut of the bytes; lines must end in LF."""

    def __init__(self) -> None:
        self.count = 0
        self._open_line_end = False

    def feed(self, data: bytes) -> None:
        """Take the next bytes of a body."""
        if self._open_line_end and data[:1] == b"\n":
            self.count += 1
            data = data[1:]
            self._open_line_end = False
        if data:
            self.count += data.count(b"\n\n")
            self._open_line_end = (len(data) - len(data.rstrip(b"\n"))) % 2 == 1


class ClientConnection(asyncio.Protocol):
    """A connection that carries one request at a time; `done` is called with each response.

    `watch` is called with each piece of a body as it comes.
    """

    def __init__(
        self,
        done: Callable[[ClientConnection, Exchanged], None],
        *,
        keep_body: bool = False,
        watch: Callable[[bytes], None] | None = None,
    ) -> None:
        self._done = done
        self._watch = watch
        self._keep_body = keep_body
        self._transport: asyncio.Transport
        self._parser: httptools.HttpResponseParser | None = None
        self._events = EventCounter()
        self._body: list[bytes] = []
        self._sent_at = 0.0
        self._first_event_at = 0.0

    def send(self, request: bytes) -> None:
        """Send a whole request; the response to the one before must be complete."""
        self._parser = httptools.HttpResponseParser(self)
        self._events = EventCounter()
        self._body = []
        self._first_event_at = 0.0
        self._sent_at = perf_counter()
        self._transport.write(request)

    def close(self) -> None:
        """Close; an unfinished response is not reported."""
        self._parser = None
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but ancestry

    def data_received(self, data: bytes) -> None:
        if self._parser is not None:
            self._parser.feed_data(data)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        if self._parser is not None:
            self._report(0)

    # httptools calls these.

    def on_body(self, body: bytes) -> None:
        self._events.feed(body)
        if self._first_event_at == 0.0 and self._events.count:
            self._first_event_at = perf_counter()
        if self._keep_body:
            self._body.append(body)
        if self._watch is not None:
            self._watch(body)

    def on_message_complete(self) -> None:
        assert self._parser is not None
        self._report(self._parser.get_status_code())

    def _report(self, status: int) -> None:
        self._parser = None
        ended_at = perf_counter()
        first_at = self._first_event_at or ended_at
        body = b"".join(self._body)
        self._done(
            self, Exchanged(status, self._events.count, first_at - self._sent_at, ended_at - self._sent_at, body)
        )


def request_bytes(url: str, body: bytes, path: str = "/v1/responses") -> bytes:
    """A whole request to the server at `url`: POST, as all that create something."""
    head = (
        f"POST {path} HTTP/1.1\r\nhost: {urlsplit(url).netloc}\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def connect(
    url: str,
    done: Callable[[ClientConnection, Exchanged], None],
    *,
    keep_body: bool = False,
    watch: Callable[[bytes], None] | None = None,
) -> ClientConnection:
    """Open a connection to the server at `url`."""
    address = urlsplit(url)
    _, connection = await asyncio.get_running_loop().create_connection(
        lambda: ClientConnection(done, keep_body=keep_body, watch=watch),
        address.hostname or "127.0.0.1",
        address.port or 80,
    )
    return connection
