"""A small HTTP/1.1 server for scripted answers: keep-alive, pipelining in order, nothing else that HTTP has.

Unaware of models: a `Service` turns each request into steps. Answers that are bytes alone are written at once, in the
same call that read the request; only what waits, or is large, gets a task. Reading stops while requests queue up.
Source: RFC 9112; parsing is httptools' (llhttp).
"""

from __future__ import annotations

import asyncio
import socket
import struct
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic_ns
from typing import cast

import httptools

from attache_core.json_codec import Json, decode
from attache_core.testing.model_play import Beat, Reset, Sleep, Step, Wait, json_steps
from attache_core.testing.model_stamps import Stamps

MAX_REQUEST_BYTES = 64 * 1024 * 1024
"""A longer request body is answered 413."""

MAX_QUEUED_REQUESTS = 64
"""So many pipelined requests of one connection wait; then it is not read until some are answered."""

WRITE_AT_ONCE_BYTES = 64 * 1024
"""Longer answers wait for the client to take them."""


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """What a client sent.

    Attributes:
        path: with its query.
        headers: names in lower case; of a repeated one, the last.
        body: the JSON object, or `{}` when the body is empty or something else.
        raw: the body's bytes.
    """

    method: str
    path: str
    headers: dict[str, str]
    body: Json
    raw: bytes

    @property
    def stream(self) -> bool:
        """Whether the client asked for server-sent events."""
        return self.body.get("stream") is True


class Service(ABC):
    """What connections need of their server."""

    released: asyncio.Event
    """Set when answers held without an event of their own go on."""

    tasks: asyncio.TaskGroup

    @abstractmethod
    def respond(self, request: ReceivedRequest) -> Sequence[Step]:
        """The answer to a request."""

    @abstractmethod
    def connected(self, connection: Connection) -> None:
        """A client came."""

    @abstractmethod
    def disconnected(self, connection: Connection, *, abandoned: bool) -> None:
        """A client went; `abandoned` when an answer to it was under way."""

    @abstractmethod
    def playing_changed(self, change: int) -> None:
        """An answer that waits began (1) or ended (-1)."""


class Connection(asyncio.Protocol):
    """One client's connection."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._parser = httptools.HttpRequestParser(self)
        self._queue: deque[tuple[ReceivedRequest | None, bool]] = deque()
        self._transport: asyncio.Transport
        self._task: asyncio.Task[None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._path = b""
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._body_bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but ancestry
        self._service.connected(self)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._queue.clear()
        playing, self._task = self._task, None
        if playing is not None:
            playing.cancel()
            self._service.playing_changed(-1)
        self._service.disconnected(self, abandoned=playing is not None)

    def abort(self) -> None:
        """Close without ceremony."""
        self._transport.abort()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._queue.append((None, False))
        if len(self._queue) > MAX_QUEUED_REQUESTS:
            self._transport.pause_reading()
        self._answer_queued()

    # httptools calls these.

    def on_message_begin(self) -> None:
        self._path = b""
        self._headers = {}
        self._body = []
        self._body_bytes = 0

    def on_url(self, url: bytes) -> None:
        self._path += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        if self._body_bytes <= MAX_REQUEST_BYTES:
            self._body.append(body)

    def on_message_complete(self) -> None:
        if self._body_bytes > MAX_REQUEST_BYTES:
            self._queue.append((None, False))
            return
        raw = b"".join(self._body)
        method = self._parser.get_method().decode()
        request = ReceivedRequest(method, self._path.decode("latin-1"), self._headers, _json_object(raw), raw)
        self._queue.append((request, self._parser.should_keep_alive()))

    def _answer_queued(self) -> None:
        while self._queue and self._task is None and not self._transport.is_closing():
            request, keep_alive = self._queue.popleft()
            self._answer(request, keep_alive=keep_alive)

    def _answer(self, request: ReceivedRequest | None, *, keep_alive: bool) -> None:
        steps = _unreadable(self._body_bytes) if request is None else self._service.respond(request)
        only = steps[0] if len(steps) == 1 else None
        if isinstance(only, bytes) and len(only) <= WRITE_AT_ONCE_BYTES and self._writable.is_set():
            self._transport.write(only)
            self._ended(keep_alive=keep_alive)
            return
        self._service.playing_changed(1)
        self._task = self._service.tasks.create_task(self._play(steps, keep_alive=keep_alive))

    async def _play(self, steps: Sequence[Step], *, keep_alive: bool) -> None:
        for step in steps:
            await self._take(step)
        if self._task is not None:
            self._task = None
            self._service.playing_changed(-1)
            self._ended(keep_alive=keep_alive)
            self._answer_queued()

    async def _take(self, step: Step) -> None:
        match step:
            case Sleep(seconds):
                await asyncio.sleep(seconds)
            case Wait(until):
                await (until or self._service.released).wait()
            case Reset():
                self._reset()
            case Beat():
                await self._beat(step)
            case _:
                for start in range(0, len(step), WRITE_AT_ONCE_BYTES):
                    self._transport.write(step[start : start + WRITE_AT_ONCE_BYTES])
                    await self._writable.wait()

    async def _beat(self, beat: Beat) -> None:
        clock = asyncio.get_running_loop().time
        started_at = clock()
        stamps = Stamps()
        for place, event in enumerate(beat.events):
            await asyncio.sleep(started_at + place * beat.period_s - clock())
            self._transport.write(stamps.fill(event, monotonic_ns() // 1000))
            await self._writable.wait()

    def _reset(self) -> None:
        """What was written has left this process; closing with no linger makes the kernel send RST, not FIN."""
        opened: socket.socket = self._transport.get_extra_info("socket")
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    def _ended(self, *, keep_alive: bool) -> None:
        if not keep_alive:
            self._transport.close()
        elif len(self._queue) <= MAX_QUEUED_REQUESTS and not self._transport.is_closing():
            self._transport.resume_reading()


def _unreadable(body_bytes: int) -> list[Step]:
    status = 413 if body_bytes > MAX_REQUEST_BYTES else 400
    return json_steps(status, {"error": {"message": "This is no HTTP request that the model server reads."}})


def _json_object(raw: bytes) -> Json:
    try:
        value = decode(raw) if raw else None
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
