"""What each frame of a peer does: the rules of RFC 9113, section 6, a method for each type.

Turns frames into events and into what has to be answered at once; unaware of what the layer above sends. A violation is
raised as that of the stream or of the connection. Invariants: every byte of DATA, of whatever stream, is counted
against the connection's window and given back to it; each header block is decoded, of whatever stream, in its order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from attache_filters.extproc.http2.errors import ConnectionViolationError, ErrorCode, StreamViolationError
from attache_filters.extproc.http2.events import (
    DataReceived,
    GoAwayReceived,
    Http2Event,
    RequestReceived,
    StreamReset,
    Unblocked,
)
from attache_filters.extproc.http2.floods import FloodGauge
from attache_filters.extproc.http2.frames import (
    ACK,
    END_STREAM,
    MAX_WINDOW,
    PADDED,
    FrameType,
    frame,
    window_update_frame,
    without_padding,
)
from attache_filters.extproc.http2.header_blocks import PRIORITY_BYTES, BlockReader, HeaderBlock, check_priority
from attache_filters.extproc.http2.headers import FieldBlock, HeaderDecoder
from attache_filters.extproc.http2.leaving import Leaving
from attache_filters.extproc.http2.limits import Http2Limits
from attache_filters.extproc.http2.outgoing import Outgoing
from attache_filters.extproc.http2.reader import Frame
from attache_filters.extproc.http2.settings import DEFAULT_WINDOW, initial_window
from attache_filters.extproc.http2.stream import Stream
from attache_filters.extproc.http2.streams import StreamTable

_Handler: TypeAlias = Callable[[int, int, bytes], None]
"""Takes the flags, the stream and the payload of a frame of its type."""

_PING_BYTES = 8
_GOAWAY_BYTES = 8
_WORD_BYTES = 4


class Incoming:
    """The receiving half of one connection.

    Attributes:
        events: where the events of the frames go.
    """

    def __init__(
        self, limits: Http2Limits, streams: StreamTable, outgoing: Outgoing, floods: FloodGauge, leaving: Leaving
    ) -> None:
        self._limits = limits
        self._streams = streams
        self._outgoing = outgoing
        self._floods = floods
        self._leaving = leaving
        self._decoder = HeaderDecoder(limits.max_header_list_bytes)
        self._blocks = BlockReader(limits)
        self._half_window = max(limits.connection_window_bytes, DEFAULT_WINDOW) // 2
        self._taken = 0
        self._handlers: dict[int, _Handler] = {FrameType.SETTINGS: self._on_first_settings}
        self._on_other: _Handler = self._on_missing_settings
        self.events: list[Http2Event] = []

    def take(self, frames: Iterable[Frame]) -> None:
        """Take frames in their order.

        Raises:
            ConnectionViolationError: nothing more may be taken.
        """
        for kind, flags, stream_id, payload in frames:
            if self._blocks.open_stream and (kind != FrameType.CONTINUATION or stream_id != self._blocks.open_stream):
                raise ConnectionViolationError(ErrorCode.PROTOCOL_ERROR, "a header block was interrupted")
            handle = self._handlers.get(kind, self._on_other)
            try:
                handle(flags, stream_id, payload)
            except StreamViolationError as violation:
                self._break_off(violation)

    def _on_first_settings(self, flags: int, stream_id: int, payload: bytes) -> None:
        """The second half of the preface (3.4), from which on every type of frame may come."""
        if flags & ACK:
            self._on_missing_settings(flags, stream_id, payload)
        self._on_settings(flags, stream_id, payload)
        self._on_other = self._on_unknown
        self._handlers = {
            FrameType.DATA: self._on_data,
            FrameType.HEADERS: self._on_headers,
            FrameType.PRIORITY: self._on_priority,
            FrameType.RST_STREAM: self._on_rst_stream,
            FrameType.SETTINGS: self._on_settings,
            FrameType.PUSH_PROMISE: self._on_push_promise,
            FrameType.PING: self._on_ping,
            FrameType.GOAWAY: self._on_goaway,
            FrameType.WINDOW_UPDATE: self._on_window_update,
            FrameType.CONTINUATION: self._on_continuation,
        }

    def _on_missing_settings(self, flags: int, stream_id: int, payload: bytes) -> None:
        raise ConnectionViolationError(ErrorCode.PROTOCOL_ERROR, "the preface has no SETTINGS")

    def _on_unknown(self, flags: int, stream_id: int, payload: bytes) -> None:
        self._floods.idle_frame()

    def _on_data(self, flags: int, stream_id: int, payload: bytes) -> None:
        size = len(payload)
        # No frame is as long as half of the connection's window, so none can overrun it.
        self._taken += size
        if self._taken >= self._half_window:
            self._outgoing.put(window_update_frame(0, self._taken))
            self._taken = 0
        stream = self._streams.get(stream_id)
        if stream is None or stream.request_ended:
            self._check_stray(stream_id, "DATA")
            return
        if not stream.window.take(size):
            raise StreamViolationError(stream_id, ErrorCode.FLOW_CONTROL_ERROR)
        data = payload
        if flags & PADDED:
            data = without_padding(payload)
            self._streams.consume(stream, size - len(data))
        end_stream = bool(flags & END_STREAM)
        if not data and not end_stream:
            self._floods.idle_frame()
            return
        self._floods.idle_frames = 0
        self._count_body(stream, len(data), end_stream)
        self.events.append(DataReceived(stream_id, data, end_stream))

    def _check_stray(self, stream_id: int, kind: str) -> None:
        """Whether a frame on a stream that takes none is the peer's fault."""
        self._floods.idle_frame()
        if self._streams.get(stream_id) is not None:
            raise StreamViolationError(stream_id, ErrorCode.STREAM_CLOSED)
        if self._streams.is_idle(stream_id):
            raise ConnectionViolationError(ErrorCode.PROTOCOL_ERROR, f"{kind} on stream {stream_id}, which is idle")
        if not self._streams.is_reset_here(stream_id) and not self._leaving.leaves_out(stream_id):
            raise ConnectionViolationError(ErrorCode.STREAM_CLOSED, f"{kind} on stream {stream_id}, which is closed")

    @staticmethod
    def _count_body(stream: Stream, size: int, end_stream: bool) -> None:
        """Hold a body against its content-length (8.1.1), and note its end."""
        if stream.due is not None:
            stream.due -= size
            if stream.due < 0 or (end_stream and stream.due):
                raise StreamViolationError(stream.id, ErrorCode.PROTOCOL_ERROR)
        stream.request_ended = end_stream

    def _on_headers(self, flags: int, stream_id: int, payload: bytes) -> None:
        if not stream_id & 1:
            raise ConnectionViolationError(ErrorCode.PROTOCOL_ERROR, f"HEADERS on stream {stream_id}, not a client's")
        self._on_block(self._blocks.begin(flags, stream_id, payload))

    def _on_continuation(self, flags: int, stream_id: int, payload: bytes) -> None:
        if not self._blocks.open_stream:
            raise ConnectionViolationError(ErrorCode.PROTOCOL_ERROR, "CONTINUATION without a header block")
        self._on_block(self._blocks.go_on(flags, payload))

    def _on_block(self, block: HeaderBlock | None) -> None:
        if block is None:
            return
        fields = self._decoder.decode(block.block)
        stream = self._streams.get(block.stream_id)
        if block.stream_id > self._streams.last_id:
            self._on_request(block, fields)
        elif stream is None or stream.request_ended:
            self._check_stray(block.stream_id, "HEADERS")
        else:
            self._on_trailers(stream, block, fields)

    def _on_request(self, block: HeaderBlock, fields: FieldBlock) -> None:
        self._streams.last_id = block.stream_id
        if self._leaving.leaves_out(block.stream_id):
            return
        if len(self._streams) >= self._limits.max_concurrent_streams:
            raise StreamViolationError(block.stream_id, ErrorCode.REFUSED_STREAM)
        if not fields.is_request or (block.end_stream and fields.content_length):
            raise StreamViolationError(block.stream_id, ErrorCode.PROTOCOL_ERROR)
        stream = self._streams.open(block.stream_id)
        stream.due = fields.content_length
        stream.request_ended = block.end_stream
        self._floods.idle_frames = 0
        self.events.append(RequestReceived(block.stream_id, fields.headers, block.end_stream))

    def _on_trailers(self, stream: Stream, block: HeaderBlock, fields: FieldBlock) -> None:
        if not block.end_stream or not fields.is_trailers:
            raise StreamViolationError(stream.id, ErrorCode.PROTOCOL_ERROR)
        self._count_body(stream, 0, end_stream=True)
        self.events.append(DataReceived(stream.id, b"", end_stream=True))

    def _on_priority(self, flags: int, stream_id: int, payload: bytes) -> None:
        self._expect_stream("PRIORITY", stream_id)
        self._expect_size("PRIORITY", payload, PRIORITY_BYTES)
        check_priority(stream_id, payload)
        self._floods.idle_frame()

    def _on_rst_stream(self, flags: int, stream_id: int, payload: bytes) -> None:
        self._expect_stream("RST_STREAM", stream_id)
        self._expect_size("RST_STREAM", payload, _WORD_BYTES)
        stream = self._known(stream_id, "RST_STREAM")
        if stream is None:
            self._floods.idle_frame()
            return
        self._streams.close(stream)
        self.events.append(StreamReset(stream_id, int.from_bytes(payload, "big")))

    def _on_settings(self, flags: int, stream_id: int, payload: bytes) -> None:
        self._expect_connection("SETTINGS", stream_id)
        self._floods.idle_frame()
        if flags & ACK:
            self._expect_size("an acknowledgement of SETTINGS", payload, 0)
            self._streams.resize_windows(self._limits.stream_window_bytes)
            return
        window = initial_window(payload)
        self._floods.answer()
        self._outgoing.put(frame(FrameType.SETTINGS, ACK, 0))
        if window is not None:
            self._report_sent(self._outgoing.resize_windows(window, self._streams))

    def _on_push_promise(self, flags: int, stream_id: int, payload: bytes) -> None:
        raise ConnectionViolationError(ErrorCode.PROTOCOL_ERROR, "a client sent PUSH_PROMISE")

    def _on_ping(self, flags: int, stream_id: int, payload: bytes) -> None:
        self._expect_connection("PING", stream_id)
        self._expect_size("PING", payload, _PING_BYTES)
        if flags & ACK:
            self._floods.idle_frame()
            self._leaving.on_pong(payload, self._streams.last_id)
            return
        self._floods.answer()
        self._outgoing.put(frame(FrameType.PING, ACK, 0, payload))

    def _on_goaway(self, flags: int, stream_id: int, payload: bytes) -> None:
        self._expect_connection("GOAWAY", stream_id)
        if len(payload) < _GOAWAY_BYTES:
            raise ConnectionViolationError(ErrorCode.FRAME_SIZE_ERROR, "GOAWAY is shorter than 8 bytes")
        self._floods.idle_frame()
        last_stream_id = int.from_bytes(payload[:4], "big") & 0x7FFF_FFFF
        self.events.append(GoAwayReceived(int.from_bytes(payload[4:8], "big"), last_stream_id))

    def _on_window_update(self, flags: int, stream_id: int, payload: bytes) -> None:
        self._expect_size("WINDOW_UPDATE", payload, _WORD_BYTES)
        self._floods.idle_frame()
        increment = int.from_bytes(payload, "big") & MAX_WINDOW
        if stream_id:
            self._open_stream_window(stream_id, increment)
        elif increment:
            self._report_sent(self._outgoing.open_window(increment))
        else:
            raise ConnectionViolationError(ErrorCode.PROTOCOL_ERROR, "WINDOW_UPDATE by 0")

    def _open_stream_window(self, stream_id: int, increment: int) -> None:
        stream = self._known(stream_id, "WINDOW_UPDATE")
        if stream is None:
            return
        if not increment:
            raise StreamViolationError(stream_id, ErrorCode.PROTOCOL_ERROR)
        if stream.send_window + increment > MAX_WINDOW:
            raise StreamViolationError(stream_id, ErrorCode.FLOW_CONTROL_ERROR)
        self._report_sent(self._outgoing.open_stream_window(stream, increment))

    def _report_sent(self, streams: Iterable[Stream]) -> None:
        """Say of which streams something could be sent after all; those of which it was the last are finished."""
        for stream in streams:
            self._floods.idle_frames = 0
            self.events.append(Unblocked(stream.id))
            if self._outgoing.ended(stream):
                self._streams.finish(stream)

    def _break_off(self, violation: StreamViolationError) -> None:
        """End one stream for what the peer did; who was told of the stream is told of its end."""
        if self._streams.get(violation.stream_id) is not None:
            self.events.append(StreamReset(violation.stream_id, violation.code))
        self._streams.reset(violation.stream_id, violation.code)
        self._floods.answer()
        self._floods.broken_stream()

    def _known(self, stream_id: int, kind: str) -> Stream | None:
        """The stream, if it is open; it may be closed, but not idle."""
        stream = self._streams.get(stream_id)
        if stream is None and self._streams.is_idle(stream_id):
            raise ConnectionViolationError(ErrorCode.PROTOCOL_ERROR, f"{kind} on stream {stream_id}, which is idle")
        return stream

    @staticmethod
    def _expect_size(kind: str, payload: bytes, size: int) -> None:
        if len(payload) != size:
            raise ConnectionViolationError(ErrorCode.FRAME_SIZE_ERROR, f"{kind} is not of {size} bytes")

    @staticmethod
    def _expect_stream(kind: str, stream_id: int) -> None:
        if not stream_id:
            raise ConnectionViolationError(ErrorCode.PROTOCOL_ERROR, f"{kind} without a stream")

    @staticmethod
    def _expect_connection(kind: str, stream_id: int) -> None:
        if stream_id:
            raise ConnectionViolationError(ErrorCode.PROTOCOL_ERROR, f"{kind} on a stream")
