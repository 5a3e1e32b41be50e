"""How an RPC ends, in gRPC's words. Source: gRPC's "Status codes and their use in gRPC"."""

from __future__ import annotations

from enum import IntEnum


class StatusCode(IntEnum):
    """The codes that a server of ours answers with."""

    OK = 0
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    RESOURCE_EXHAUSTED = 8
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14


class RpcError(Exception):
    """An RPC ends with another status than OK; the message is for the peer."""

    def __init__(self, code: StatusCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
