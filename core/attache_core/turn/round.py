"""One inference round: what the inference server is asked, and its answer as canonical events.

This is the only place where a dialect is known. What goes in is a turn whose tools are function tools and whose input
is complete; what comes out is a valid stream of its own (`response.created` … one terminal event), whichever server
answered and whether or not it streamed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from attache_core.errors import AttacheError, UpstreamError
from attache_core.events.accumulator import Accumulator
from attache_core.events.answer_json import answer_object
from attache_core.events.delta_frames import FrameReader
from attache_core.events.delta_run import DeltaRun
from attache_core.events.dialects import AutoDialect
from attache_core.events.error_codes import BAD_ANSWER, OVER_LIMIT, TIMEOUT
from attache_core.events.event import Event
from attache_core.events.event_stream import Batch, batch_pieces, batched, until_failure
from attache_core.events.failed_response import error_of
from attache_core.events.model_events import Finished, ModelEvent
from attache_core.events.sse import SseFrame
from attache_core.events.text_done import SaidEvent
from attache_core.json_codec import Json
from attache_core.turn.model_request import model_request
from attache_core.turn.open_response import open_response
from attache_core.turn.patience import PatientBody
from attache_core.types.turn import TurnRequest

UPSTREAM_REQUEST_ID = "x-upstream-request-id"
"""The inference server's own `x-request-id`, under a name that leaves ours alone: in what a `Send` answers with, and in
an error that goes to a client."""

MAX_ERROR_BODY_BYTES = 64 * 1024
"""How much of an error answer is read; the rest cannot matter."""


class InferenceAnswer(Protocol):
    """An inference server's HTTP answer: status, headers with lower-case names, and the body as it arrives."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def body(self) -> AsyncIterator[bytes]: ...


Send = Callable[[TurnRequest], Awaitable[InferenceAnswer]]
"""Asks an inference server for an answer to the turn, over the API that it speaks. Raises UpstreamError when it cannot,
ClientError when that API has no way to ask for it."""


class AnswerDialect(Protocol):
    """What reads one answer of an inference server; a dialect of the Responses API, or the reader of another API."""

    def read_data(self, data: bytes) -> Iterable[SaidEvent]: ...
    def read_run(self, run: DeltaRun) -> Iterable[SaidEvent]: ...
    def read_response(self, body: Json) -> Iterable[SaidEvent]: ...
    def close(self) -> Iterable[SaidEvent]: ...
    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> AttacheError: ...


@dataclass(frozen=True, slots=True)
class RoundLimits:
    """Bounds of one round.

    Attributes:
        max_event_bytes: one server-sent event of the inference server.
        max_response_bytes: one JSON answer, or all that is kept of a stream.
        error_body_timeout_s: how long the body of an error may take; what came by then is what counts.
        headers_timeout_s: how long the server may take until its answer begins: with one that does not stream, as long
            as it takes to make it.
        idle_timeout_s: how long an answer that has begun may be silent.
    """

    max_event_bytes: int = 16 * 1024 * 1024
    max_response_bytes: int = 16 * 1024 * 1024
    error_body_timeout_s: float = 5.0
    headers_timeout_s: float = 600.0
    idle_timeout_s: float = 600.0


@batched
async def run_round(
    turn: TurnRequest, send: Send, *, dialect: AnswerDialect | None = None, limits: RoundLimits | None = None
) -> AsyncGenerator[Batch, None]:
    """Ask the inference server once; `dialect` is a new reader of what it speaks, by default one that recognises it.

    Yields canonical events that end with one terminal event; only that one when the turn is not streamed.

    Raises:
        ClientError: before the first event: the server refused the request (4xx), or the turn needs state that nobody
            loaded.
        UpstreamError: it failed. Before the first event, in any way; after it, in all ways but its own word: the
            connection broke, it fell silent, or it said what is no answer or too much. Then the ends of what is open
            are owed by whoever passes the events on (see `StreamWatch`), as for any filter that breaks.
    """
    limits = limits or RoundLimits()
    reader = _AnswerReader(turn, dialect or AutoDialect(), limits)
    answer = await _ask(model_request(turn), send, reader.dialect.error, limits)
    body = PatientBody(answer.body, limits.idle_timeout_s)
    try:
        if not _is_event_stream(answer.headers, asked=turn.stream):
            yield reader.read_whole(await _read_body(body, limits.max_response_bytes))
            return
        async for chunk in body:
            for piece in batch_pieces(chunk, limits.max_event_bytes):
                shown, failure = until_failure(reader.feed(piece))
                if shown:
                    yield shown
                if failure is not None:
                    raise failure
                if reader.ended:
                    return
        yield reader.close()
    finally:
        body.close()


_ReadError = Callable[[int, Mapping[str, str], bytes], AttacheError]
"""What an HTTP error answer says, from its status, headers and body; see `Dialect.error`."""


async def _ask(turn: TurnRequest, send: Send, read_error: _ReadError, limits: RoundLimits) -> InferenceAnswer:
    """An inference server's answer, once it has begun and is one that can be read.

    Raises:
        AttacheError: what `read_error` makes of a status that is not 2xx.
        UpstreamError: 504 when it did not begin in time; 502 when it is in a content coding.
    """
    answer = await _begin(turn, send, limits.headers_timeout_s)
    if not 200 <= answer.status < 300:
        error = read_error(
            answer.status, answer.headers, await _read_error_body(answer.body, limits.error_body_timeout_s)
        )
        if UPSTREAM_REQUEST_ID in answer.headers:
            error.headers[UPSTREAM_REQUEST_ID] = answer.headers[UPSTREAM_REQUEST_ID]
        raise error
    if answer.headers.get("content-encoding", "identity").lower() != "identity":
        message = "The inference server sent an answer in a content coding that it was not asked for."
        raise UpstreamError(message, code=BAD_ANSWER)
    return answer


async def _begin(turn: TurnRequest, send: Send, timeout_s: float) -> InferenceAnswer:
    try:
        async with asyncio.timeout(timeout_s):
            return await send(turn)
    except TimeoutError as error:
        message = f"The inference server did not begin to answer within {timeout_s:g} s."
        raise UpstreamError(message, http_status=504, code=TIMEOUT) from error


def _is_event_stream(headers: Mapping[str, str], *, asked: bool) -> bool:
    """Whether the body is server-sent events. An answer that does not say is what was asked for."""
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    return media_type == "text/event-stream" or (asked and not media_type)


class _AnswerReader:
    """From an answer's bytes to the round's events. Sans-IO but for the clock of the response's timestamps."""

    def __init__(self, turn: TurnRequest, dialect: AnswerDialect, limits: RoundLimits) -> None:
        self.dialect = dialect
        self._stream = turn.stream
        self._frames = FrameReader(max_line_bytes=limits.max_event_bytes)
        self._accumulator = Accumulator(max_bytes=limits.max_response_bytes)
        self._sequencer = open_response(turn)

    @property
    def ended(self) -> bool:
        return self._accumulator.finished is not None

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """The events that these bytes of a stream complete, each before the next can fail."""
        for frame in self._frames.feed(chunk):
            if self.ended:
                return
            for said in self._said(frame):
                for portion in self._accumulator.portions(said):
                    yield from self._show(self._accumulator.feed(portion))

    def _said(self, frame: SseFrame | DeltaRun) -> Iterable[SaidEvent]:
        return self.dialect.read_run(frame) if isinstance(frame, DeltaRun) else self.dialect.read_data(frame.data)

    def close(self) -> list[Event]:
        """The stream ended: the events that are still owed."""
        self._frames.close()
        return self._show(self._rest())

    def read_whole(self, body: bytes) -> list[Event]:
        """The events of an answer that came in one piece; one that failed is an error, whatever else is in it.

        Raises:
            AttacheError: what the answer says of its failure.
        """
        said = [*self._accept(self.dialect.read_response(answer_object(body))), *self._rest()]
        finished = self._accumulator.finished
        if finished is not None and finished.status == "failed":
            raise error_of(finished.error)
        return self._show(said)

    def _rest(self) -> list[ModelEvent]:
        """What is owed where the answer ends; nothing if it has said its own end."""
        return [*self._accept(self.dialect.close()), *self._accumulator.close()]

    def _accept(self, said: Iterable[SaidEvent]) -> list[ModelEvent]:
        return [event for one in said for event in self._accumulator.feed(one)]

    def _show(self, said: list[ModelEvent]) -> list[Event]:
        shown: list[Event] = []
        for event in said:
            if isinstance(event, Finished):
                if event.status == "failed" and not (self._stream and self._sequencer.started):
                    raise error_of(event.error)
                shown += self._sequencer.finish(event, completed_at=int(time.time()))
            elif self._stream:
                shown += self._sequencer.emit(event)
            else:
                self._sequencer.keep(event)
        return shown if self._stream else [event for event in shown if event.is_terminal]


async def _read_body(body: AsyncIterator[bytes], limit: int) -> bytes:
    """A body whole. Raises UpstreamError when it is longer than `limit` bytes."""
    chunks: list[bytes] = []
    size = 0
    async for chunk in body:
        size += len(chunk)
        if size > limit:
            raise UpstreamError(f"The inference server's answer is larger than {limit} bytes.", code=OVER_LIMIT)
        chunks.append(chunk)
    return b"".join(chunks)


async def _read_error_body(body: AsyncIterator[bytes], timeout_s: float) -> bytes:
    """What came of an error's body in time, and before it broke off: the status says more than the rest would."""
    read = b""
    with suppress(TimeoutError, UpstreamError):
        async with asyncio.timeout(timeout_s):
            async for chunk in body:
                read += chunk
                if len(read) >= MAX_ERROR_BODY_BYTES:
                    break
    return read[:MAX_ERROR_BODY_BYTES]
