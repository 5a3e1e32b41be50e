"""What a connection reports. Tuples, not dataclasses: one is made for each frame of a busy connection."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

HeaderList: TypeAlias = tuple[tuple[bytes, bytes], ...]
"""Fields as they came, pseudo-header fields first, names in lower case."""


class RequestReceived(NamedTuple):
    """A stream was opened. `:method`, `:scheme` and `:path` are there, once each."""

    stream_id: int
    headers: HeaderList
    end_stream: bool


class DataReceived(NamedTuple):
    """A part of a request's body, to be given credit for (`consume`) once taken; empty only where the body ends."""

    stream_id: int
    data: bytes
    end_stream: bool


class StreamReset(NamedTuple):
    """A stream is gone: the peer reset it, or we did because of what the peer sent. `code` may be an unknown one."""

    stream_id: int
    code: int


class Unblocked(NamedTuple):
    """Some of what waited for the peer's windows was sent: `unsent` fell."""

    stream_id: int


class GoAwayReceived(NamedTuple):
    """The peer opens no more streams; those that are open go on."""

    code: int
    last_stream_id: int


class ConnectionFailed(NamedTuple):
    """The peer broke the protocol: GOAWAY waits to be sent, all streams are gone, and nothing more is read."""

    code: int
    reason: str


Http2Event: TypeAlias = RequestReceived | DataReceived | StreamReset | Unblocked | GoAwayReceived | ConnectionFailed
