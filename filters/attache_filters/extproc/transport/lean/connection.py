"""One connection of Envoy's: RPCs over the HTTP/2 machine, on a transport of the event loop.

Knows what becomes of the machine's events; unaware of what RPCs there are, beyond the path of each. Invariants: one
write follows one read, and one more each turn of the event loop in which calls had something to send; while the peer
does not read, calls that write wait, and what else is owed to it is left to the machine, which bounds it; a lost
connection ends all of its calls, a broken call no other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeAlias, cast

import structlog

from attache_core.tools.task_scope import TaskScope
from attache_filters.extproc.http2.connection import Http2Connection
from attache_filters.extproc.http2.events import (
    ConnectionFailed,
    DataReceived,
    RequestReceived,
    StreamReset,
    Unblocked,
)
from attache_filters.extproc.transport.lean.call import Call
from attache_filters.extproc.transport.lean.call_head import (
    RESPONSE_HEAD,
    http_refusal,
    read_head,
    timeout_s,
    trailers,
)
from attache_filters.extproc.transport.rpc import RpcError, StatusCode

MAX_UNSENT_BYTES = 1 << 18
"""So much may wait of what one call sends, or of all that a connection sends, before calls that write wait too."""

Handler: TypeAlias = Callable[[Call], Coroutine[Any, Any, None]]
"""Serves one RPC to its end. Raises RpcError for a status other than OK."""

log = structlog.get_logger()


class GrpcConnection(asyncio.Protocol):
    """A connection, made by the loop's `create_server` and its like.

    Args:
        handlers: by path.
        tasks: where they run.

    Attributes:
        closed: set when the connection has ended.
    """

    def __init__(self, handlers: Mapping[bytes, Handler], tasks: TaskScope) -> None:
        self.closed = asyncio.Event()
        self._handlers = handlers
        self._tasks = tasks
        self._http2 = Http2Connection()
        self._transport: asyncio.Transport
        self._calls: dict[int, Call] = {}
        self._writing: dict[Call, None] = {}
        self._is_flush_due = False
        self._clogged = False

    def drain(self) -> None:
        """Take no further RPCs, as soon as the peer knows; the connection closes after the last one."""
        self._http2.go_away()
        self._flush_later()

    def close(self) -> None:
        """End the connection; what has been written is still sent."""
        self.flush()
        self._transport.close()

    def abort(self) -> None:
        """End the connection at once."""
        self._transport.abort()

    # The event loop calls these.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but ancestry
        self._transport.set_write_buffer_limits(MAX_UNSENT_BYTES)
        self.flush()

    def data_received(self, data: bytes) -> None:
        self._is_flush_due = True
        for event in self._http2.receive(data):
            if isinstance(event, DataReceived):
                if (call := self._calls.get(event.stream_id)) is not None:
                    call.receive(event.data, end=event.end_stream)
            elif isinstance(event, RequestReceived):
                self._begin(event)
            elif isinstance(event, StreamReset):
                self._cancel(event.stream_id)
            elif isinstance(event, Unblocked):
                if (call := self._calls.get(event.stream_id)) is not None:
                    call.wake()
            elif isinstance(event, ConnectionFailed):
                log.warning("a connection broke the protocol", code=event.code, reason=event.reason)
                self._lose_calls()
        self.flush()

    def pause_writing(self) -> None:
        self._clogged = True

    def resume_writing(self) -> None:
        self._clogged = False
        for call in self._calls.values():
            call.wake()
        self._flush_later()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lose_calls()
        self.closed.set()

    # Its calls call these.

    def flush_soon(self, call: Call) -> None:
        self._writing[call] = None
        self._flush_later()

    def credit(self, call: Call, size: int) -> None:
        self._http2.consume(call.stream_id, size)
        self._flush_later()

    def is_clogged(self, call: Call) -> bool:
        return self._clogged or self._http2.unsent(call.stream_id) > MAX_UNSENT_BYTES

    def flush(self) -> None:
        self._is_flush_due = False
        if self._clogged or self._transport.is_closing():
            return
        for call in self._writing:
            self._send(call)
        self._writing.clear()
        if data := self._http2.take_output():
            self._transport.write(data)
        if self._http2.done:
            self._transport.close()

    def _flush_later(self) -> None:
        if not self._is_flush_due:
            self._is_flush_due = True
            asyncio.get_running_loop().call_soon(self._flush_if_due)

    def _flush_if_due(self) -> None:
        if self._is_flush_due:
            self.flush()

    def _send(self, call: Call) -> None:
        if call.stream_id not in self._calls:
            return  # its peer is gone
        data, ends = call.take()
        if data or (ends and call.error is None):
            self._send_head(call)
        if data:
            self._http2.send_data(call.stream_id, data)
        if ends:
            fields = trailers(call.error) if call.answered else RESPONSE_HEAD + trailers(call.error)
            self._http2.send_headers(call.stream_id, fields, end_stream=True)
            del self._calls[call.stream_id]

    def _send_head(self, call: Call) -> None:
        if not call.answered:
            call.answered = True
            self._http2.send_headers(call.stream_id, RESPONSE_HEAD)

    # What becomes of a call.

    def _begin(self, request: RequestReceived) -> None:
        head = read_head(request.headers)
        refusal = http_refusal(head)
        if refusal is not None:
            self._http2.send_headers(request.stream_id, refusal, end_stream=True)
            return
        call = self._calls[request.stream_id] = Call(self, request.stream_id, head)
        call.start(self._tasks.start(self._serve(call)))
        if request.end_stream:
            call.receive(b"", end=True)

    async def _serve(self, call: Call) -> None:
        try:
            async with asyncio.timeout(timeout_s(call.head)):
                await self._handler(call)(call)
            call.end()
        except RpcError as error:
            call.end(error)
        except TimeoutError:
            call.end(RpcError(StatusCode.DEADLINE_EXCEEDED, "The deadline of the call is over."))
        except asyncio.CancelledError as cancelled:
            call.end(RpcError(StatusCode.UNAVAILABLE, "The server stopped."))
            # The frames in its traceback hold it: all of the exchange would wait for the collector of cycles.
            raise cancelled.with_traceback(None) from None
        except Exception:
            # The edge: a call that cannot go on ends alone.
            log.exception("a call was broken off", path=call.head[b":path"])
            call.end(RpcError(StatusCode.INTERNAL, "The call was broken off."))

    def _handler(self, call: Call) -> Handler:
        handler = self._handlers.get(call.head[b":path"])
        if handler is None:
            raise RpcError(StatusCode.UNIMPLEMENTED, "There is no such method.")
        return handler

    def _cancel(self, stream_id: int) -> None:
        call = self._calls.pop(stream_id, None)
        if call is not None:
            self._writing.pop(call, None)
            call.cancel()

    def _lose_calls(self) -> None:
        for stream_id in list(self._calls):
            self._cancel(stream_id)
