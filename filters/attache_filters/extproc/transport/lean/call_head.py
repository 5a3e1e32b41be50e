"""The head of an RPC's request, and the heads and trailers of what answers it. Pure.

Source: gRPC over HTTP/2, "Requests", "Responses"; percent-encoding of messages as it says there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias
from urllib.parse import quote

from attache_filters.extproc.transport.rpc import RpcError, StatusCode

Fields: TypeAlias = tuple[tuple[bytes, bytes], ...]

MAX_STATUS_MESSAGE_CHARS = 1000

RESPONSE_HEAD: Fields = ((b":status", b"200"), (b"content-type", b"application/grpc"))
OK_TRAILERS: Fields = ((b"grpc-status", b"0"),)

_CONTENT_TYPE = re.compile(rb"application/grpc(\+proto)?(;.*)?")
_TIMEOUT = re.compile(rb"([0-9]{1,8})([HMSmun])")
_SECONDS = {b"H": 3600.0, b"M": 60.0, b"S": 1.0, b"m": 1e-3, b"u": 1e-6, b"n": 1e-9}
_UNESCAPED = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) != "%")


def read_head(fields: Fields) -> Mapping[bytes, bytes]:
    """The fields of a request by name; of repeated ones the first counts."""
    return dict(reversed(fields))


def http_refusal(head: Mapping[bytes, bytes]) -> Fields | None:
    """How a request is answered that is no gRPC: by an HTTP status alone."""
    if head.get(b":method") != b"POST":
        return ((b":status", b"405"), (b"allow", b"POST"))
    if not _CONTENT_TYPE.fullmatch(head.get(b"content-type", b"")):
        return ((b":status", b"415"),)
    return None


def timeout_s(head: Mapping[bytes, bytes]) -> float | None:
    """How long the peer waits for the end of the RPC. Raises RpcError: INTERNAL, it is no time."""
    text = head.get(b"grpc-timeout")
    if text is None:
        return None
    match = _TIMEOUT.fullmatch(text)
    if match is None:
        raise RpcError(StatusCode.INTERNAL, "The header grpc-timeout is not a number and a unit.")
    return int(match[1]) * _SECONDS[match[2]]


def trailers(error: RpcError | None) -> Fields:
    """The status of an RPC that ended."""
    if error is None:
        return OK_TRAILERS
    text = quote(error.message[:MAX_STATUS_MESSAGE_CHARS], safe=_UNESCAPED, errors="replace")
    return ((b"grpc-status", b"%d" % error.code), (b"grpc-message", text.encode("ascii")))
