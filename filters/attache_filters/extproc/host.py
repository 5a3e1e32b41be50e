"""Drives one ext_proc stream: reads what Envoy sends, runs the segment's filters, sends what they answer.

Three tasks live as long as the stream: the reader handles Envoy's messages one at a time and in order and never waits
for a write; the writer sends; the chain runs the filters once the request has been read whole. It knows no transport
(a `MessageStream` is given) and decides nothing about legality (the session does). Invariants: the first call below
continues the request that Envoy holds, if it still is held (for one that asks for an event stream, see
`Segment.stream_through_loop`) and the turn does not outlive it; every other one is a sub-request to the loop listener;
when the stream ends, by whatever end, the chain is cancelled, what it opened is closed in reverse order, and whatever
still asks for the stream gets `StreamEndedError`; unless a filter has said that its turn goes on without its client:
then the chain runs to its end in `UnattendedTurns`, and its answer is read and dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from typing import Protocol

from structlog.contextvars import bind_contextvars

from attache_core import json_codec
from attache_core.errors import ClientError, error_body
from attache_core.types.turn import Unattended
from attache_filters.extproc.body_pipe import BodyPipe
from attache_filters.extproc.chain import Chain
from attache_filters.extproc.codec import encode_error, gather
from attache_filters.extproc.content_coding import decode_body, request_too_large
from attache_filters.extproc.cross_origin import check_origin
from attache_filters.extproc.guard import as_attache_error
from attache_filters.extproc.headers import (
    EVENT_STREAM_TYPE,
    JSON_TYPE,
    REQUEST_ID,
    media_type,
    request_headers,
    response_headers,
)
from attache_filters.extproc.outbox import Outbox
from attache_filters.extproc.reply_budget import CountedBody, ReplyBudget
from attache_filters.extproc.scope import Scope
from attache_filters.extproc.segment import Segment
from attache_filters.extproc.session import (
    Answer,
    ProtocolError,
    RequestBody,
    RequestEnd,
    RequestHeaders,
    ResponseBody,
    ResponseEnd,
    ResponseHeaders,
    Session,
    SessionEvent,
)
from attache_filters.extproc.stream_end import StreamEndedError
from attache_filters.extproc.wire import ext_proc_pb2 as pb
from attache_filters.sdk.http import HttpRequest, HttpResponse

MAX_WHOLE_REPLY_BYTES = 1 << 20
"""A reply of a filter's own up to this length goes out in one message; a longer one is streamed."""

MAX_LOGGED_ID_CHARS = 128
"""Of a request id, which a client may choose."""

MAX_DROPPED_BYTES = 64 << 20
"""So much of a request over the limit is read before it is answered 413 without waiting for its end."""


class ResponseBrokenError(Exception):
    """A response failed after it began and cannot be ended properly: the client must see it break off."""


class LoopListenerMissingError(Exception):
    """A filter called below after the held request was gone, and its segment has no loop listener."""


class MessageStream(Protocol):
    """The transport's end of one ext_proc stream. `read` and `write` may be awaited at the same time."""

    async def read(self) -> pb.ProcessingRequest | None:
        """The next message of Envoy's, or None at the end. Cancelled when Envoy cancels the stream."""
        ...

    async def write(self, message: pb.ProcessingResponse) -> None:
        """Send one message. Raises StreamEndedError when the stream is over."""
        ...


class SegmentHost:
    """One exchange of one segment."""

    def __init__(self, segment: Segment, stream: MessageStream) -> None:
        self._segment = segment
        self._stream = stream
        self._session = Session()
        self._outbox = Outbox(self._session)
        self._budget = ReplyBudget(segment.max_reply_bytes)
        self._head: RequestHeaders | None = None
        self._chunks: list[bytes] = []
        self._request_bytes = 0
        self._refused = False
        self._chain: asyncio.Task[None] | None = None
        self._filters: Chain | None = None
        self._answered_elsewhere = False
        self._response_body = BodyPipe()
        self._response_head: ResponseHeaders | None = None
        self._response_settled = asyncio.Event()

    async def run(self) -> None:
        """Serve the stream until Envoy ends it.

        Raises:
            ExceptionGroup: of ProtocolError or ResponseBrokenError; the stream must then be ended with an error.
        """
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._write())
                await self._read_to_end(tasks)
        except* _StreamOverError:
            pass

    async def _write(self) -> None:
        with suppress(StreamEndedError):
            while True:
                for message in await self._outbox.take():
                    await self._stream.write(message)
        self._fail_waits()

    async def _read_to_end(self, tasks: asyncio.TaskGroup) -> None:
        try:
            await self._read(tasks)
        finally:
            self._fail_waits()
        if self._session.answer is not Answer.DONE:
            # Aborting the group cancels the chain once. Envoy often cancels the stream right after it closed it, and a
            # second cancellation of the chain would break into its clean-up.
            raise _StreamOverError

    async def _read(self, tasks: asyncio.TaskGroup) -> None:
        while (message := await self._stream.read()) is not None:
            for event in self._session.receive(message):
                await self._handle(event, tasks)

    async def _handle(self, event: SessionEvent, tasks: asyncio.TaskGroup) -> None:
        match event:
            case RequestHeaders():
                self._head = event
            case RequestBody(data):
                self._take_request_body(data)
            case RequestEnd():
                if self._is_too_large:
                    self._refuse()
                elif self._head is not None:
                    self._chain = tasks.create_task(self._attend(self._head))
            case ResponseHeaders():
                self._take_response(event, tasks)
            case ResponseBody(data):
                self._budget.receive(len(data))
                await self._response_body.put(data)
            case ResponseEnd():
                self._response_body.end()

    @property
    def _is_too_large(self) -> bool:
        return self._request_bytes > self._segment.max_request_bytes

    def _take_request_body(self, data: bytes) -> None:
        """Keep a body up to the limit; read a longer one to its end all the same, and drop it.

        A client that is still sending when the answer comes would meet a closed connection and never read the answer.
        """
        self._request_bytes += len(data)
        if not self._is_too_large:
            self._chunks.append(data)
            return
        self._chunks.clear()
        if self._request_bytes > self._segment.max_request_bytes + MAX_DROPPED_BYTES:
            self._refuse()

    def _refuse(self) -> None:
        if not self._refused:
            self._refused = True
            error = request_too_large(self._segment.max_request_bytes)
            self._outbox.reply(error.http_status, {"content-type": JSON_TYPE}, json_codec.encode(error_body(error)))

    def _take_response(self, head: ResponseHeaders, tasks: asyncio.TaskGroup) -> None:
        """Give the response to the filter that waits below; one that nobody asked for walks through unchanged."""
        match self._session.answer:
            case Answer.CONTINUED:
                self._response_head = head
                self._response_settled.set()
            case Answer.UNDECIDED:
                if self._chain is not None:
                    self._answered_elsewhere = True
                    self._chain.cancel()
                self._response_body = BodyPipe()
                self._chain = tasks.create_task(self._echo_response())
            case _:
                self._response_body.close()

    async def _attend(self, head: RequestHeaders) -> None:
        """Run the chain; without its client, when that goes away and a filter has asked for it."""
        if self._segment.unattended is None:
            await self._run_chain(head)
        else:
            await self._segment.unattended.attend(partial(self._run_chain, head), lambda: self._goes_on)

    @property
    def _goes_on(self) -> Unattended | None:
        """Whether, and how long, the chain goes on when the stream ends now; a client that was answered has no wish."""
        return None if self._filters is None or self._answered_elsewhere else self._filters.unattended

    async def _echo_response(self) -> None:
        self._outbox.start_echo()
        async for data in self._response_body:
            await self._outbox.send_body(data)
        self._outbox.end()

    async def _run_chain(self, head: RequestHeaders) -> None:
        bind_contextvars(segment=self._segment.name, request_id=head.headers.get(REQUEST_ID, "")[:MAX_LOGGED_ID_CHARS])
        try:
            await self._exchange(head)
        except StreamEndedError:
            pass
        finally:
            # It leads back here: without this, all of an exchange would wait for the collector of cycles.
            self._filters = None

    async def _exchange(self, head: RequestHeaders) -> None:
        async with Scope() as scope:
            scope.own(self._response_body)
            response = await self._answer(head, scope)
            scope.own(response.body)
            try:
                await self._respond(response)
            except StreamEndedError:
                if self._goes_on is None:
                    raise
                async for _ in response.body:
                    pass

    async def _answer(self, head: RequestHeaders, scope: Scope) -> HttpResponse:
        body = b"".join(self._chunks)
        self._chunks.clear()
        try:
            check_origin(head.method, head.headers)
            body = decode_body(body, head.headers.get("content-encoding", ""), self._segment.max_request_bytes)
        except ClientError as error:
            return encode_error(error)
        request = HttpRequest(head.method, head.path, request_headers(head.headers), body)
        self._filters = Chain(bottom=partial(self._below, head, scope), scope=scope, check=self._budget.check)
        return await self._filters.answer(self._segment.filters, request)

    async def _below(self, head: RequestHeaders, scope: Scope, request: HttpRequest) -> HttpResponse:
        request = _named_as(head, request)
        if self._may_continue(head, request):
            self._outbox.continue_request(request.path, request_headers(request.headers), request.body)
            arrived = await self._response_arrived()
            return HttpResponse(arrived.status, response_headers(arrived.headers), self._response_body)
        if self._segment.loop is None:
            raise self._no_loop()
        response = await self._segment.loop.send(request, authority=head.authority)
        scope.own(response.body)
        return response

    def _may_continue(self, head: RequestHeaders, request: HttpRequest) -> bool:
        wants_stream = request.headers.get("accept") == EVENT_STREAM_TYPE
        loops = (self._segment.stream_through_loop and wants_stream) or self._goes_on is not None
        elsewhere = self._segment.loop is not None and loops
        return self._session.request_held and request.method == head.method and not elsewhere

    def _no_loop(self) -> LoopListenerMissingError:
        names = ", ".join(type(each).__qualname__ for each in self._segment.filters)
        return LoopListenerMissingError(
            f"A filter of the segment {self._segment.name!r} ({names}) called below after the held request was gone: "
            "its class must say calls_below_again = True, so that it gets a loop listener below it."
        )

    async def _response_arrived(self) -> ResponseHeaders:
        await self._response_settled.wait()
        if self._response_head is None:
            raise StreamEndedError(self._session.phase)
        return self._response_head

    async def _respond(self, response: HttpResponse) -> None:
        """Send a response; one that fails before its first byte is answered by the error instead."""
        event_stream = media_type(response.headers) == EVENT_STREAM_TYPE
        try:
            await self._send(response, CountedBody(response.body, self._budget, event_stream=event_stream))
        except (StreamEndedError, ProtocolError):
            raise
        except Exception as error:
            failure = as_attache_error("response body", error)
            if self._session.answer not in (Answer.UNDECIDED, Answer.CONTINUED):
                raise ResponseBrokenError(failure.message) from error
            answer = encode_error(failure)
            await self._send(answer, answer.body)

    async def _send(self, response: HttpResponse, body: AsyncIterator[bytes]) -> None:
        headers = response_headers(response.headers)
        begin = b""
        if media_type(headers) != EVENT_STREAM_TYPE:
            # At least the first bytes are read before the head is sent: they may fail.
            begin, complete = await gather(body, 0 if self._session.response_came else MAX_WHOLE_REPLY_BYTES)
            if complete and not self._session.response_came:
                self._outbox.reply(response.status, headers, begin)
                return
        if self._session.answer is Answer.CONTINUED:
            await self._response_arrived()
        self._outbox.start(response.status, headers)
        await self._outbox.send_body(begin)
        async for data in body:
            await self._outbox.send_body(data)
        self._outbox.end()

    def _fail_waits(self) -> None:
        """The stream has ended: whatever waits for it, or will, is told so."""
        failure = StreamEndedError(self._session.phase)
        self._response_body.fail(failure)
        self._outbox.fail(failure)
        self._response_settled.set()


def _named_as(head: RequestHeaders, request: HttpRequest) -> HttpRequest:
    """The request under the id of its exchange: whatever headers a filter chose, Envoy answers the client with it."""
    if REQUEST_ID not in head.headers:
        return request
    headers = {**request.headers, REQUEST_ID: head.headers[REQUEST_ID]}
    return HttpRequest(request.method, request.path, headers, request.body)


class _StreamOverError(Exception):
    """Ends the task group of a stream that ended before its answer did."""
