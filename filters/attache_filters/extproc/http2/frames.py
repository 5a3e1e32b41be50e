"""Frames: types, flags, how they are written, how padding is taken off. Source: RFC 9113, sections 4 and 6."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from struct import Struct

from attache_filters.extproc.http2.errors import ConnectionViolationError, ErrorCode

CLIENT_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

MAX_FRAME_BYTES = 1 << 14
"""The payload that every endpoint takes: we announce no more, and send no more whatever the peer would take."""

MAX_WINDOW = (1 << 31) - 1
MAX_STREAM_ID = (1 << 31) - 1

FRAME_HEAD = Struct(">LBL")
"""Length (24 bits) and type, flags, stream."""

FRAME_HEAD_BYTES = FRAME_HEAD.size


class FrameType(IntEnum):
    """The first byte after a frame's length."""

    DATA = 0x0
    HEADERS = 0x1
    PRIORITY = 0x2
    RST_STREAM = 0x3
    SETTINGS = 0x4
    PUSH_PROMISE = 0x5
    PING = 0x6
    GOAWAY = 0x7
    WINDOW_UPDATE = 0x8
    CONTINUATION = 0x9


END_STREAM = 0x1
ACK = 0x1
END_HEADERS = 0x4
PADDED = 0x8
PRIORITY = 0x20

_DATA = int(FrameType.DATA)


def frame(kind: int, flags: int, stream_id: int, payload: bytes = b"") -> bytes:
    """One frame; `payload` holds no more than `MAX_FRAME_BYTES`."""
    return FRAME_HEAD.pack(len(payload) << 8 | kind, flags, stream_id) + payload


def data_frame(stream_id: int, data: bytes | memoryview, end_stream: bool) -> bytes:
    """A DATA frame without padding; `data` holds no more than `MAX_FRAME_BYTES`."""
    return FRAME_HEAD.pack(len(data) << 8 | _DATA, end_stream, stream_id) + data


def header_frames(stream_id: int, block: bytes, end_stream: bool) -> bytes:
    """HEADERS and, where the block is long, the CONTINUATION frames that must follow at once."""
    flags = END_STREAM if end_stream else 0
    if len(block) <= MAX_FRAME_BYTES:
        return frame(FrameType.HEADERS, flags | END_HEADERS, stream_id, block)
    frames = [frame(FrameType.HEADERS, flags, stream_id, block[:MAX_FRAME_BYTES])]
    for start in range(MAX_FRAME_BYTES, len(block), MAX_FRAME_BYTES):
        last = start + MAX_FRAME_BYTES >= len(block)
        fragment = block[start : start + MAX_FRAME_BYTES]
        frames.append(frame(FrameType.CONTINUATION, END_HEADERS if last else 0, stream_id, fragment))
    return b"".join(frames)


def settings_frame(settings: Iterable[tuple[int, int]]) -> bytes:
    """SETTINGS, as identifiers and values in their order."""
    payload = b"".join(key.to_bytes(2, "big") + value.to_bytes(4, "big") for key, value in settings)
    return frame(FrameType.SETTINGS, 0, 0, payload)


def window_update_frame(stream_id: int, increment: int) -> bytes:
    """Credit for a stream, or for the connection (stream 0)."""
    return frame(FrameType.WINDOW_UPDATE, 0, stream_id, increment.to_bytes(4, "big"))


def rst_stream_frame(stream_id: int, code: int) -> bytes:
    """The end of a stream, from now on."""
    return frame(FrameType.RST_STREAM, 0, stream_id, code.to_bytes(4, "big"))


def goaway_frame(last_stream_id: int, code: int, debug: bytes = b"") -> bytes:
    """Streams after `last_stream_id` were and will not be served."""
    return frame(FrameType.GOAWAY, 0, 0, last_stream_id.to_bytes(4, "big") + code.to_bytes(4, "big") + debug)


def without_padding(payload: bytes) -> bytes:
    """The payload of a frame with the PADDED flag, without its first byte and its padding (6.1, 6.2)."""
    if not payload:
        raise ConnectionViolationError(ErrorCode.FRAME_SIZE_ERROR, "a padded frame without the length of its padding")
    padding = payload[0]
    if padding >= len(payload):
        raise ConnectionViolationError(ErrorCode.PROTOCOL_ERROR, "more padding than payload")
    return payload[1 : len(payload) - padding]
