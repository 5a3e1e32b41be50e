"""A client that writes any frame, legal or not, and reads what a connection answers; it shares no code with it."""

from __future__ import annotations

from typing import NamedTuple

from hpack import Encoder

from attache_filters.extproc.http2 import Http2Connection, Http2Event, Http2Limits

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS, PADDED, WITH_PRIORITY = 0x1, 0x1, 0x4, 0x8, 0x20

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

POST = (
    (b":method", b"POST"),
    (b":scheme", b"http"),
    (b":path", b"/service/method"),
    (b":authority", b"gateway"),
    (b"te", b"trailers"),
    (b"content-type", b"application/grpc"),
)
OK = ((b":status", b"200"), (b"content-type", b"application/grpc"))
TRAILERS = ((b"grpc-status", b"0"),)


class Frame(NamedTuple):
    """One frame of a connection's output."""

    kind: int
    flags: int
    stream_id: int
    payload: bytes


def frame(kind: int, flags: int, stream_id: int, payload: bytes = b"") -> bytes:
    """Any frame; nothing is checked."""
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream_id.to_bytes(4, "big") + payload


def word(value: int) -> bytes:
    """Four bytes."""
    return value.to_bytes(4, "big")


def setting(key: int, value: int) -> bytes:
    """One setting."""
    return key.to_bytes(2, "big") + word(value)


def block(fields: tuple[tuple[bytes, bytes], ...] = POST) -> bytes:
    """A header block that leaves the table alone."""
    return Encoder().encode([(name, value, True) for name, value in fields])


def request(stream_id: int, *, end_stream: bool = False, fields: tuple[tuple[bytes, bytes], ...] = POST) -> bytes:
    """A request's HEADERS."""
    return frame(HEADERS, END_HEADERS | (END_STREAM if end_stream else 0), stream_id, block(fields))


def parsed(output: bytes) -> list[Frame]:
    """The frames of `output`, which holds whole ones."""
    frames = []
    while output:
        size = int.from_bytes(output[:3], "big")
        assert len(output) >= 9 + size
        stream_id = int.from_bytes(output[5:9], "big")
        frames.append(Frame(output[3], output[4], stream_id, output[9 : 9 + size]))
        output = output[9 + size :]
    return frames


class RawClient:
    """The client's side of a connection, past the preface unless `greet` is false.

    Attributes:
        connection: the side under test.
    """

    def __init__(self, limits: Http2Limits = Http2Limits(), *, greet: bool = True) -> None:  # noqa: B008 - it is frozen
        self.connection = Http2Connection(limits)
        if greet:
            assert self.send(PREFACE, frame(SETTINGS, 0, 0), frame(SETTINGS, ACK, 0)) == []
            self.connection.take_output()

    def send(self, *frames: bytes) -> list[Http2Event]:
        """Write the frames at once; what the connection reports."""
        return self.connection.receive(b"".join(frames))

    def answers(self) -> list[Frame]:
        """What the connection wrote since the last look."""
        return parsed(self.connection.take_output())
