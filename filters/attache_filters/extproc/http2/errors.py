"""Error codes, and what a peer did wrong. Source: RFC 9113, sections 5.4 and 7."""

from __future__ import annotations

from enum import IntEnum


class ErrorCode(IntEnum):
    """Why a stream or a connection ends."""

    NO_ERROR = 0x0
    PROTOCOL_ERROR = 0x1
    INTERNAL_ERROR = 0x2
    FLOW_CONTROL_ERROR = 0x3
    SETTINGS_TIMEOUT = 0x4
    STREAM_CLOSED = 0x5
    FRAME_SIZE_ERROR = 0x6
    REFUSED_STREAM = 0x7
    CANCEL = 0x8
    COMPRESSION_ERROR = 0x9
    CONNECT_ERROR = 0xA
    ENHANCE_YOUR_CALM = 0xB
    INADEQUATE_SECURITY = 0xC
    HTTP_1_1_REQUIRED = 0xD


class ConnectionViolationError(Exception):
    """The connection cannot go on: GOAWAY with `code`, of which `reason` is the debug data."""

    def __init__(self, code: ErrorCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class StreamViolationError(Exception):
    """One stream cannot go on: RST_STREAM with `code`; its siblings are not concerned."""

    def __init__(self, stream_id: int, code: ErrorCode) -> None:
        super().__init__(f"stream {stream_id}: {code.name}")
        self.stream_id = stream_id
        self.code = code
