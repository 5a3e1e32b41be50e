"""The server's side of HTTP/2, without I/O: as much of RFC 9113 as one gRPC peer needs, and all of its refusals."""

from attache_filters.extproc.http2.connection import Http2Connection
from attache_filters.extproc.http2.errors import ErrorCode
from attache_filters.extproc.http2.events import (
    ConnectionFailed,
    DataReceived,
    GoAwayReceived,
    HeaderList,
    Http2Event,
    RequestReceived,
    StreamReset,
    Unblocked,
)
from attache_filters.extproc.http2.limits import Http2Limits

__all__ = [
    "Http2Connection",
    "Http2Limits",
    "ErrorCode",
    "HeaderList",
    "Http2Event",
    "RequestReceived",
    "DataReceived",
    "StreamReset",
    "Unblocked",
    "GoAwayReceived",
    "ConnectionFailed",
]
