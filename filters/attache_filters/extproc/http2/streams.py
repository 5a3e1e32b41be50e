"""The streams of a connection: how they begin and end, and which of them are gone. Source: RFC 9113, 5.1 and 8.1.

A stream that we end while the peer may still send on it is remembered, so that its late frames are passed over.
"""

from __future__ import annotations

from collections.abc import Iterator

from attache_filters.extproc.http2.errors import ErrorCode
from attache_filters.extproc.http2.frames import rst_stream_frame, window_update_frame
from attache_filters.extproc.http2.limits import Http2Limits
from attache_filters.extproc.http2.outgoing import Outgoing
from attache_filters.extproc.http2.settings import DEFAULT_WINDOW
from attache_filters.extproc.http2.stream import Stream


class StreamTable:
    """The streams of one connection, by id.

    Attributes:
        last_id: the highest that the peer opened; a higher one is idle.
        get: the open stream of an id, or None.
    """

    def __init__(self, limits: Http2Limits, outgoing: Outgoing) -> None:
        self._max_remembered = limits.max_remembered_resets
        self._outgoing = outgoing
        self._open: dict[int, Stream] = {}
        self._reset_here: dict[int, None] = {}
        # Until the peer has read our SETTINGS it may use the default.
        self._stream_window = max(limits.stream_window_bytes, DEFAULT_WINDOW)
        self.last_id = 0
        self.get = self._open.get

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Stream]:
        return iter(self._open.values())

    def is_idle(self, stream_id: int) -> bool:
        """Whether the stream was never opened. Even ids are ours to open, and we open none."""
        return stream_id > self.last_id or not stream_id & 1

    def is_reset_here(self, stream_id: int) -> bool:
        """Whether we ended the stream while the peer could still send on it: late frames are to be passed over."""
        return stream_id in self._reset_here

    def open(self, stream_id: int) -> Stream:
        """Begin a stream."""
        stream = Stream(stream_id, self._stream_window, self._outgoing.initial_window)
        self._open[stream_id] = stream
        return stream

    def resize_windows(self, size: int) -> None:
        """Let each stream's window be what our SETTINGS say, now that the peer has read them."""
        self._stream_window = size
        for stream in self:
            stream.window.resize(size)

    def consume(self, stream: Stream, size: int) -> None:
        """Give the peer credit for a stream that sends on."""
        increment = stream.window.give(size)
        if increment and not stream.request_ended:
            self._outgoing.put(window_update_frame(stream.id, increment))

    def close(self, stream: Stream) -> None:
        """The stream is gone for both sides."""
        del self._open[stream.id]
        self._outgoing.forget(stream)

    def finish(self, stream: Stream) -> None:
        """The response was sent to its end: the peer is told to stop where it has not ended its request."""
        if stream.request_ended:
            self.close(stream)
        else:
            self.reset(stream.id, ErrorCode.NO_ERROR)

    def reset(self, stream_id: int, code: int) -> None:
        """End a stream, which may be one that never was in the table, from our side."""
        stream = self._open.get(stream_id)
        if stream is not None:
            self.close(stream)
        self._outgoing.put(rst_stream_frame(stream_id, code))
        self._reset_here[stream_id] = None
        if len(self._reset_here) > self._max_remembered:
            del self._reset_here[next(iter(self._reset_here))]

    def clear(self) -> None:
        """End all at once, without a word: the connection is over."""
        self._open.clear()
        self._outgoing.forget_all()
