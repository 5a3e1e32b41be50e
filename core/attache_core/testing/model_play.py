"""A reply as the steps that a server takes on the connection: bytes to write, waits, a reset.

Knows HTTP/1.1 framing and how interruptions cut an answer; knows no sockets and no clock, so a played reply is a value
that can be kept and served again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, Literal

from attache_core.json_codec import Json, encode
from attache_core.testing.model_script import (
    Cut,
    Dialect,
    Hold,
    HttpError,
    Raw,
    Recorded,
    Reply,
    Said,
    final_response,
    http_error,
)
from attache_core.testing.model_wire import wire_for
from attache_core.testing.model_wire.chat_completions import ChatCompletionsWire
from attache_core.testing.model_wire.wire import Wire

JSON_TYPE = "application/json"
SSE_TYPE = "text/event-stream; charset=utf-8"
CHAT_COMPLETIONS: Final = "chat_completions"

Spoken = Dialect | Literal["chat_completions"]
"""A dialect of the Responses API, or the other API."""

LAST_CHUNK = b"0\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Sleep:
    """Wait this long."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait until this is set; None: until the server is told to release what it holds."""

    until: asyncio.Event | None


@dataclass(frozen=True, slots=True)
class Reset:
    """Reset the connection."""


@dataclass(frozen=True, slots=True)
class Beat:
    """Write these events, one every `period_s`, by a clock of the stream's own: a late one delays no other.

    A delta in which `model_stamps.SENT_AT` stands says there when it was written.
    """

    period_s: float
    events: tuple[bytes, ...]


Step = bytes | Sleep | Wait | Reset | Beat


@dataclass(frozen=True, slots=True)
class _Body:
    """An answer before it is framed; `events` are what the interruptions count."""

    status: int
    headers: tuple[tuple[str, str], ...]
    events: tuple[bytes, ...]
    chunked: bool


def steps_of(reply: Reply, request: Json, dialect: Spoken) -> list[Step]:
    """How `reply` is played to a create request, by a server of `dialect` unless the reply has its own; or, where that
    is the Chat Completions API, to a chat request."""
    spoken = dialect if dialect == CHAT_COMPLETIONS else reply.dialect or dialect
    try:
        body = _body(reply, request, spoken)
    except ValueError as error:
        body = _body(http_error(500, message=str(error)), request, spoken)
    steps = list(_joined(_interrupted(body, reply)))
    return steps if reply.interruption is None or isinstance(reply.interruption, Hold) else _closed(steps)


def json_steps(status: int, body: object) -> list[Step]:
    """A whole JSON answer."""
    payload = encode(body)
    return [_head(status, (("content-type", JSON_TYPE), ("content-length", str(len(payload))))) + payload]


def error_steps(dialect: Spoken, status: int, message: str, param: str | None = None) -> list[Step]:
    """An HTTP error in the dialect's own shape."""
    return json_steps(status, _wire(dialect, {}, Said()).error_body(status, message, param=param))


def _wire(spoken: Spoken, request: Json, said: Said) -> Wire | ChatCompletionsWire:
    return ChatCompletionsWire(request, said) if spoken == CHAT_COMPLETIONS else wire_for(spoken, request, said)


def _body(reply: Reply, request: Json, dialect: Spoken) -> _Body:
    stream = request.get("stream") is True
    content_type = SSE_TYPE if stream else JSON_TYPE
    match reply.content:
        case Said() as said:
            return _said(said, request, dialect, stream=stream)
        case HttpError(status, message, body, headers):
            given = _wire(dialect, {}, Said()).error_body(status, message) if body is None else body
            return _whole(status, given if isinstance(given, bytes) else encode(given), headers)
        case Recorded(status, events, body):
            return _recorded(status, events, body, stream=stream)
        case Raw(status, headers, chunks):
            named = {name.lower() for name, _ in headers}
            typed = headers if "content-type" in named else (*headers, ("content-type", content_type))
            return _Body(status, typed, chunks, chunked="content-length" not in named)


def _said(said: Said, request: Json, dialect: Spoken, *, stream: bool) -> _Body:
    wire = _wire(dialect, request, said)
    if stream:
        return _events(200, tuple(wire.frames()))
    if failure := said.failure:
        return _whole(failure.http_status, encode(wire.error_body(failure.http_status, failure.message, failure.code)))
    return _whole(200, encode(wire.response()))


def _recorded(status: int, events: tuple[bytes, ...] | None, body: Json | None, *, stream: bool) -> _Body:
    if stream and events is not None:
        return _events(status, events)
    plain = body if events is None else final_response(events)
    if plain is None or (stream and status < 400):
        raise ValueError("this answer was recorded in the other form, streamed or plain, and cannot be made up")
    return _whole(status, encode(plain))


def _events(status: int, events: tuple[bytes, ...]) -> _Body:
    return _Body(status, (("content-type", SSE_TYPE), ("cache-control", "no-cache")), events, chunked=True)


def _whole(status: int, payload: bytes, headers: tuple[tuple[str, str], ...] = ()) -> _Body:
    return _Body(status, (("content-type", JSON_TYPE), *headers), (payload,), chunked=False)


def _interrupted(body: _Body, reply: Reply) -> Iterator[Step]:
    stop = reply.interruption
    if isinstance(stop, Hold) and stop.after_events is None:
        yield Wait(stop.until)
        stop = None
    events, stop_at = _divided(body, stop)
    if isinstance(stop, Cut) and stop.how == "end":
        events, stop_at = events[:stop_at], -1
    yield _head(body.status, _framing(body, events))
    for place, event in enumerate(events):
        if place == stop_at:
            yield from _stopped(stop)
        if reply.delay_s and (body.chunked or place == 0):
            yield Sleep(reply.delay_s)
        yield b"%x\r\n%b\r\n" % (len(event), event) if body.chunked and event else event
    if stop_at == len(events):
        yield from _stopped(stop)
    if body.chunked:
        yield LAST_CHUNK


def _divided(body: _Body, stop: Cut | Hold | None) -> tuple[tuple[bytes, ...], int]:
    """The events of an answer, and before which of them it stops (-1: before none)."""
    if stop is None or stop.after_events is None:
        return body.events, -1
    if body.chunked:
        count = len(body.events)
        return body.events, max(count + stop.after_events, 0) if stop.after_events < 0 else min(
            stop.after_events, count
        )
    whole = b"".join(body.events)
    half = len(whole) // 2
    return (whole[:half], whole[half:]), min(abs(stop.after_events), 1)


def _stopped(stop: Cut | Hold | None) -> Iterator[Step]:
    if isinstance(stop, Hold):
        yield Wait(stop.until)
    elif isinstance(stop, Cut):
        yield Reset()


def _closed(steps: list[Step]) -> list[Step]:
    """Nothing follows a reset."""
    end = next((place for place, step in enumerate(steps) if isinstance(step, Reset)), len(steps) - 1)
    return steps[: end + 1]


def _framing(body: _Body, events: Sequence[bytes]) -> tuple[tuple[str, str], ...]:
    if body.chunked:
        return (*body.headers, ("transfer-encoding", "chunked"))
    if any(name.lower() == "content-length" for name, _ in body.headers):
        return body.headers
    return (*body.headers, ("content-length", str(sum(map(len, events)))))


def _head(status: int, headers: tuple[tuple[str, str], ...]) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
    return f"HTTP/1.1 {status} {_phrase(status)}\r\n{lines}\r\n".encode("latin-1")


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "Unknown"


def _joined(steps: Iterator[Step]) -> Iterator[Step]:
    """Bytes that nothing separates are one write."""
    together: list[bytes] = []
    for step in steps:
        if isinstance(step, bytes):
            together.append(step)
            continue
        if together:
            yield b"".join(together)
            together = []
        yield step
    if together:
        yield b"".join(together)
