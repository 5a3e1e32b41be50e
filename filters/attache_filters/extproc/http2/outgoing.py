"""What goes to the peer: frames that wait to be written, and bodies that wait for its windows. Source: RFC 9113, 5.2
and 6.9.

Unaware of what comes in. Invariants: no DATA frame is longer than `MAX_FRAME_BYTES` or than either window was; a
stream's frames keep their order, its last frame being its last; streams that wait for the connection's window take
turns.
"""

from __future__ import annotations

from collections.abc import Iterable

from attache_filters.extproc.http2.errors import ConnectionViolationError, ErrorCode
from attache_filters.extproc.http2.frames import MAX_FRAME_BYTES, MAX_WINDOW, data_frame
from attache_filters.extproc.http2.settings import DEFAULT_WINDOW
from attache_filters.extproc.http2.stream import Stream


class Outgoing:
    """The sending half of one connection.

    Attributes:
        initial_window: what a new stream may send.
    """

    def __init__(self) -> None:
        self._frames: list[bytes] = []
        self._window = DEFAULT_WINDOW
        self._waiting: dict[int, Stream] = {}
        self.initial_window = DEFAULT_WINDOW
        self.put = self._frames.append

    def take(self) -> bytes:
        """All that is to be written now."""
        if not self._frames:
            return b""
        output = b"".join(self._frames)
        self._frames.clear()
        return output

    def send_data(self, stream: Stream, data: bytes, end_stream: bool) -> bool:
        """Send a body's next part, or as much of it as the windows allow; whether the stream's last frame was sent."""
        size = len(data)
        fits = size <= stream.send_window and size <= self._window and size <= MAX_FRAME_BYTES
        if not stream.waiting and (fits or not size):
            stream.send_window -= size
            self._window -= size
            self.put(data_frame(stream.id, data, end_stream))
            return end_stream
        if data:
            stream.waiting.append(memoryview(data))
            stream.unsent += size
            self._waiting[stream.id] = stream
        if end_stream:
            stream.ending = data_frame(stream.id, b"", True)
        self._flush([stream])
        return self.ended(stream)

    def send_last(self, stream: Stream, frames: bytes) -> bool:
        """Send the stream's last frames after what waits; whether they were sent."""
        if stream.waiting:
            stream.ending = frames
            return False
        self.put(frames)
        return True

    def ended(self, stream: Stream) -> bool:
        """Whether the last frame of a stream that had to wait was sent."""
        return stream.ending is not None and not stream.waiting

    def forget(self, stream: Stream) -> None:
        """Drop what waits of a stream."""
        self._waiting.pop(stream.id, None)

    def forget_all(self) -> None:
        """Drop what waits of all streams."""
        self._waiting.clear()

    def open_window(self, increment: int) -> list[Stream]:
        """Take credit for the connection; the streams of which something was sent."""
        self._window += increment
        if self._window > MAX_WINDOW:
            raise ConnectionViolationError(ErrorCode.FLOW_CONTROL_ERROR, "the connection's window is over 2^31-1")
        return self._flush(list(self._waiting.values()))

    def open_stream_window(self, stream: Stream, increment: int) -> list[Stream]:
        """Take credit for a stream that stays within 2^31-1; the streams of which something was sent."""
        stream.send_window += increment
        return self._flush([stream]) if stream.waiting else []

    def resize_windows(self, size: int, streams: Iterable[Stream]) -> list[Stream]:
        """Take another INITIAL_WINDOW_SIZE (6.9.2); the streams of which something was sent."""
        change = size - self.initial_window
        self.initial_window = size
        for stream in streams:
            stream.send_window += change
            if stream.send_window > MAX_WINDOW:
                raise ConnectionViolationError(ErrorCode.FLOW_CONTROL_ERROR, "a stream's window is over 2^31-1")
        return self._flush(list(self._waiting.values()))

    def _flush(self, streams: list[Stream]) -> list[Stream]:
        """Send a frame of each stream in turn until nothing more may be sent; the streams of which something was."""
        sent: dict[int, Stream] = {}
        while streams and self._window > 0:
            streams = [stream for stream in streams if stream.waiting and self._send_frame(stream)]
            sent |= {stream.id: stream for stream in streams}
        return list(sent.values())

    def _send_frame(self, stream: Stream) -> bool:
        room = min(stream.send_window, self._window, MAX_FRAME_BYTES)
        if room <= 0:
            return False
        part = _front(stream, room)
        stream.send_window -= len(part)
        self._window -= len(part)
        stream.unsent -= len(part)
        self.put(data_frame(stream.id, part, False))
        del self._waiting[stream.id]
        if stream.waiting:
            self._waiting[stream.id] = stream  # behind the others
        elif stream.ending is not None:
            self.put(stream.ending)
        return True


def _front(stream: Stream, room: int) -> memoryview:
    """Take up to `room` bytes of what waits first."""
    part = stream.waiting.popleft()
    if len(part) > room:
        stream.waiting.appendleft(part[room:])
        part = part[:room]
    return part
