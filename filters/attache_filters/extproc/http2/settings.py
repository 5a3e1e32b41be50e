"""SETTINGS, both ways: what we announce, and what of the peer's concerns a server. Source: RFC 9113, section 6.5.

The peer's MAX_FRAME_SIZE is checked and not kept: what we send is never longer than the least it may be. Nor is
HEADER_TABLE_SIZE, for our header blocks use no table, nor MAX_CONCURRENT_STREAMS, for a server opens none here.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct

from attache_filters.extproc.http2.errors import ConnectionViolationError, ErrorCode
from attache_filters.extproc.http2.frames import MAX_FRAME_BYTES, MAX_WINDOW
from attache_filters.extproc.http2.limits import Http2Limits

DEFAULT_WINDOW = 65_535
"""Of each stream and of the connection, until SETTINGS or WINDOW_UPDATE say otherwise."""

_MAX_FRAME_SIZE_BOUND = (1 << 24) - 1
_SETTING = Struct(">HL")


class Setting(IntEnum):
    """Identifiers of settings; unknown ones are passed over."""

    HEADER_TABLE_SIZE = 0x1
    ENABLE_PUSH = 0x2
    MAX_CONCURRENT_STREAMS = 0x3
    INITIAL_WINDOW_SIZE = 0x4
    MAX_FRAME_SIZE = 0x5
    MAX_HEADER_LIST_SIZE = 0x6


def announced(limits: Http2Limits) -> list[tuple[int, int]]:
    """What we say of ourselves; the rest is as the RFC has it by default."""
    return [
        (Setting.MAX_CONCURRENT_STREAMS, limits.max_concurrent_streams),
        (Setting.INITIAL_WINDOW_SIZE, limits.stream_window_bytes),
        (Setting.MAX_HEADER_LIST_SIZE, limits.max_header_list_bytes),
    ]


def initial_window(payload: bytes) -> int | None:
    """Check the settings of a peer, and give its INITIAL_WINDOW_SIZE if it is among them: the last one counts."""
    if len(payload) % _SETTING.size:
        raise ConnectionViolationError(ErrorCode.FRAME_SIZE_ERROR, "SETTINGS of a length that is no multiple of 6")
    window = None
    for key, value in _SETTING.iter_unpack(payload):
        _check(key, value)
        if key == Setting.INITIAL_WINDOW_SIZE:
            window = value
    return window


def _check(key: int, value: int) -> None:
    if key == Setting.ENABLE_PUSH and value > 1:
        raise ConnectionViolationError(ErrorCode.PROTOCOL_ERROR, "ENABLE_PUSH is neither 0 nor 1")
    if key == Setting.INITIAL_WINDOW_SIZE and value > MAX_WINDOW:
        raise ConnectionViolationError(ErrorCode.FLOW_CONTROL_ERROR, "INITIAL_WINDOW_SIZE is over 2^31-1")
    if key == Setting.MAX_FRAME_SIZE and not MAX_FRAME_BYTES <= value <= _MAX_FRAME_SIZE_BOUND:
        raise ConnectionViolationError(ErrorCode.PROTOCOL_ERROR, "MAX_FRAME_SIZE is not from 2^14 to 2^24-1")
