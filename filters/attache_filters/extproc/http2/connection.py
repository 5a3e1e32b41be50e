"""One HTTP/2 connection, the server's side: what a peer sent in, events out; what is to be sent in, bytes out.

Knows the protocol as far as a server of gRPC needs it; unaware of sockets, clocks and of what the streams carry. It
never raises for what a peer sent: a violation ends the stream or, where the RFC says so or the stream cannot be told,
the connection, with the right code; after that nothing more is read. What is sent on a stream that is gone is dropped,
for its end was reported or asked for. A response that ends before its request ends the stream: RST_STREAM with NO_ERROR
follows it (8.1). Source: RFC 9113.
"""

from __future__ import annotations

from attache_filters.extproc.http2.errors import ConnectionViolationError, ErrorCode
from attache_filters.extproc.http2.events import ConnectionFailed, HeaderList, Http2Event
from attache_filters.extproc.http2.floods import FloodGauge
from attache_filters.extproc.http2.frames import header_frames, settings_frame, window_update_frame
from attache_filters.extproc.http2.headers import NO_DYNAMIC_TABLE, encode
from attache_filters.extproc.http2.incoming import Incoming
from attache_filters.extproc.http2.leaving import Leaving
from attache_filters.extproc.http2.limits import Http2Limits
from attache_filters.extproc.http2.outgoing import Outgoing
from attache_filters.extproc.http2.reader import FrameReader
from attache_filters.extproc.http2.settings import DEFAULT_WINDOW, announced
from attache_filters.extproc.http2.streams import StreamTable

_DEFAULT_LIMITS = Http2Limits()


class Http2Connection:
    """A connection, from its first byte to its last; our SETTINGS wait to be taken from the beginning."""

    def __init__(self, limits: Http2Limits = _DEFAULT_LIMITS) -> None:
        self._reader = FrameReader()
        self._floods = FloodGauge(limits)
        self._outgoing = Outgoing()
        self._streams = StreamTable(limits, self._outgoing)
        self._leaving = Leaving(self._outgoing)
        self._incoming = Incoming(limits, self._streams, self._outgoing, self._floods, self._leaving)
        self._failed = False
        self._any_headers = False
        self._outgoing.put(settings_frame(announced(limits)))
        if limits.connection_window_bytes > DEFAULT_WINDOW:
            self._outgoing.put(window_update_frame(0, limits.connection_window_bytes - DEFAULT_WINDOW))

    @property
    def done(self) -> bool:
        """Whether nothing more will be read or sent: write what `take_output` gives, then close."""
        return self._failed or (self._leaving.last_served is not None and not self._streams)

    @property
    def open_streams(self) -> int:
        """How many streams are open."""
        return len(self._streams)

    def receive(self, data: bytes) -> list[Http2Event]:
        """What the bytes bring, in the peer's order; any cut of them brings the same. Take the output afterwards."""
        if self._failed:
            return []
        events = self._incoming.events = []
        try:
            self._incoming.take(self._reader.read(data))
        except ConnectionViolationError as violation:
            self._fail(violation.code, violation.reason)
            events.append(ConnectionFailed(violation.code, violation.reason))
        return events

    def take_output(self) -> bytes:
        """All that is to be written now, in one write. Not to be called while the transport takes no more."""
        self._floods.waiting_answers = 0
        return self._outgoing.take()

    def send_headers(self, stream_id: int, headers: HeaderList, *, end_stream: bool = False) -> None:
        """Send the response's headers or, with `end_stream`, its trailers or all of it; after the body that waits."""
        stream = self._streams.get(stream_id)
        if stream is None:
            return
        assert end_stream or not stream.answered, "a response has one header section"
        assert stream.ending is None, "the response has ended"
        block = encode(headers)
        if not self._any_headers:
            self._any_headers = True
            block = NO_DYNAMIC_TABLE + block
        if not stream.answered:
            stream.answered = True
            self._floods.answered()
        self._floods.idle_frames = 0
        frames = header_frames(stream_id, block, end_stream)
        if not end_stream:
            self._outgoing.put(frames)
        elif self._outgoing.send_last(stream, frames):
            self._streams.finish(stream)

    def send_data(self, stream_id: int, data: bytes, *, end_stream: bool = False) -> None:
        """Send the next part of a response's body. What the peer's windows do not allow yet waits (`unsent`)."""
        stream = self._streams.get(stream_id)
        if stream is None:
            return
        assert stream.answered, "headers come before the body"
        assert stream.ending is None, "the response has ended"
        if not data and not end_stream:
            return
        self._floods.idle_frames = 0
        if self._outgoing.send_data(stream, data, end_stream):
            self._streams.finish(stream)

    def unsent(self, stream_id: int) -> int:
        """How many bytes of a response's body wait for the peer's windows; `Unblocked` says when they became fewer."""
        stream = self._streams.get(stream_id)
        return 0 if stream is None else stream.unsent

    def consume(self, stream_id: int, size: int) -> None:
        """Let the peer send as much again on a stream as was taken of its body, once it is worth a frame."""
        stream = self._streams.get(stream_id)
        if stream is not None:
            assert size <= stream.window.unconsumed, "more was consumed than came"
            self._streams.consume(stream, size)

    def reset(self, stream_id: int, code: ErrorCode) -> None:
        """End a stream at once, and drop what waits of it."""
        if self._streams.get(stream_id) is not None:
            self._streams.reset(stream_id, code)

    def go_away(self, code: ErrorCode = ErrorCode.NO_ERROR) -> None:
        """Leave: with NO_ERROR once the streams under way have ended (`done`), else at once."""
        if self._failed:
            return
        if code is ErrorCode.NO_ERROR:
            self._leaving.begin()
        else:
            self._fail(code, "")

    def _fail(self, code: ErrorCode, reason: str) -> None:
        self._failed = True
        self._leaving.end(self._streams.last_id, code, reason)
        self._streams.clear()
