"""Puts header blocks together from HEADERS and CONTINUATION frames. Source: RFC 9113, sections 4.3, 6.2 and 6.10.

Unaware of what the blocks say. Invariants: nothing comes between the frames of a block; what waits for its end is
bounded in bytes and in frames. Priorities are passed over (5.3.2), but for one that cannot be.
"""

from __future__ import annotations

from typing import NamedTuple

from attache_filters.extproc.http2.errors import ConnectionViolationError, ErrorCode
from attache_filters.extproc.http2.frames import END_HEADERS, END_STREAM, PADDED, PRIORITY, without_padding
from attache_filters.extproc.http2.limits import Http2Limits

PRIORITY_BYTES = 5

_STREAM_ID = 0x7FFF_FFFF


class HeaderBlock(NamedTuple):
    """A complete block, still compressed."""

    stream_id: int
    block: bytes
    end_stream: bool


class BlockReader:
    """Reads the header blocks of one connection.

    Attributes:
        open_stream: the stream whose block is not complete: only its CONTINUATION may come; 0 if there is none.
    """

    def __init__(self, limits: Http2Limits) -> None:
        self._limits = limits
        self._fragments: list[bytes] = []
        self._size = 0
        self._end_stream = False
        self.open_stream = 0

    def begin(self, flags: int, stream_id: int, payload: bytes) -> HeaderBlock | None:
        """Take a HEADERS frame; the block, if it is complete."""
        fragment = without_padding(payload) if flags & PADDED else payload
        if flags & PRIORITY:
            check_priority(stream_id, fragment)
            fragment = fragment[PRIORITY_BYTES:]
        self._fragments = []
        self._size = 0
        self._end_stream = bool(flags & END_STREAM)
        self.open_stream = stream_id
        return self._add(flags, fragment)

    def go_on(self, flags: int, payload: bytes) -> HeaderBlock | None:
        """Take a CONTINUATION frame of the open stream; the block, if it is complete."""
        if len(self._fragments) > self._limits.max_continuation_frames:
            raise ConnectionViolationError(ErrorCode.ENHANCE_YOUR_CALM, "a header block has too many frames")
        return self._add(flags, payload)

    def _add(self, flags: int, fragment: bytes) -> HeaderBlock | None:
        self._fragments.append(fragment)
        self._size += len(fragment)
        if self._size > self._limits.max_header_block_bytes:
            raise ConnectionViolationError(ErrorCode.ENHANCE_YOUR_CALM, "a header block is too long")
        if not flags & END_HEADERS:
            return None
        stream_id, self.open_stream = self.open_stream, 0
        return HeaderBlock(stream_id, b"".join(self._fragments), self._end_stream)


def check_priority(stream_id: int, payload: bytes) -> None:
    """Refuse a priority that is cut short, or by which a stream depends on itself."""
    if len(payload) < PRIORITY_BYTES:
        raise ConnectionViolationError(ErrorCode.FRAME_SIZE_ERROR, "a priority is shorter than 5 bytes")
    if int.from_bytes(payload[:4], "big") & _STREAM_ID == stream_id:
        raise ConnectionViolationError(ErrorCode.PROTOCOL_ERROR, "a stream depends on itself")
