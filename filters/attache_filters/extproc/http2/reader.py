"""Cuts what comes into frames, wherever the bytes were split. Source: RFC 9113, sections 3.4 and 4.1.

Knows the preface, and no frame's meaning. Invariant: what is kept between two calls is shorter than one frame.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from attache_filters.extproc.http2.errors import ConnectionViolationError, ErrorCode
from attache_filters.extproc.http2.frames import CLIENT_PREFACE, FRAME_HEAD, FRAME_HEAD_BYTES, MAX_FRAME_BYTES

Frame: TypeAlias = tuple[int, int, int, bytes]
"""Type, flags, stream, payload."""

_STREAM_ID = 0x7FFF_FFFF


class FrameReader:
    """Reads the client's side of one connection."""

    def __init__(self) -> None:
        self._unread = b""
        self._in_preface = True

    def read(self, data: bytes) -> Iterator[Frame]:
        """The frames that are complete with `data`; to be read to the end.

        Raises:
            ConnectionViolationError: in the frame's place, where the bytes are no preface or a frame is too long, as
                soon as its length is known.
        """
        if self._unread:
            data = self._unread + data
        position, end = 0, len(data)
        if self._in_preface:
            if not self._holds_preface(data):
                self._unread = data
                return
            self._in_preface = False
            position = len(CLIENT_PREFACE)
        while end - position >= FRAME_HEAD_BYTES:
            length_and_type, flags, stream_id = FRAME_HEAD.unpack_from(data, position)
            size = length_and_type >> 8
            if size > MAX_FRAME_BYTES:
                raise ConnectionViolationError(ErrorCode.FRAME_SIZE_ERROR, "a frame is longer than 16384 bytes")
            start = position + FRAME_HEAD_BYTES
            if end - start < size:
                break
            position = start + size
            yield length_and_type & 0xFF, flags, stream_id & _STREAM_ID, data[start:position]
        self._unread = data[position:]

    def _holds_preface(self, data: bytes) -> bool:
        """Whether all of the preface is there."""
        if not CLIENT_PREFACE.startswith(data[: len(CLIENT_PREFACE)]):
            raise ConnectionViolationError(ErrorCode.PROTOCOL_ERROR, "no HTTP/2 connection preface")
        return len(data) >= len(CLIENT_PREFACE)
