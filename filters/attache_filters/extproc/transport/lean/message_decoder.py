"""The messages of one RPC out of the bytes of its DATA frames, however those are cut. Pure.

Source: gRPC over HTTP/2, "Length-Prefixed-Message".
"""

from __future__ import annotations

from attache_filters.extproc.transport.rpc import RpcError, StatusCode

PREFIX_BYTES = 5
"""A flag that says whether the message is compressed, and its length."""

MAX_MESSAGE_BYTES = 256 << 20
"""Length of one message of Envoy's, which may hold a whole request body; no shorter than a turn may be by default."""


class MessageDecoder:
    """Incremental: bytes in, whole messages out.

    Args:
        max_message_bytes: length of one message without its prefix.
    """

    def __init__(self, max_message_bytes: int = MAX_MESSAGE_BYTES) -> None:
        self._max_message_bytes = max_message_bytes
        self._parts: list[bytes] = []
        self._held_bytes = 0
        self._wanted_bytes = PREFIX_BYTES

    def feed(self, data: bytes) -> list[bytes]:
        """The messages that are complete with `data`.

        Raises:
            RpcError: UNIMPLEMENTED, a message is compressed; RESOURCE_EXHAUSTED, one is too long.
        """
        self._parts.append(data)
        self._held_bytes += len(data)
        if self._held_bytes < self._wanted_bytes:
            return []
        data = data if len(self._parts) == 1 else b"".join(self._parts)
        messages, position = [], 0
        while len(data) - position >= PREFIX_BYTES:
            end = position + PREFIX_BYTES + self._message_bytes(data, position)
            if end > len(data):
                break
            messages.append(data[position + PREFIX_BYTES : end])
            position = end
        self._hold(data[position:])
        return messages

    def close(self) -> None:
        """There is no more. Raises RpcError: INTERNAL, the last message is not complete."""
        if self._held_bytes:
            raise RpcError(StatusCode.INTERNAL, "The request ended inside a message.")

    def _message_bytes(self, data: bytes, position: int) -> int:
        if data[position]:
            raise RpcError(StatusCode.UNIMPLEMENTED, "Compressed messages are not understood here.")
        length = int.from_bytes(data[position + 1 : position + PREFIX_BYTES], "big")
        if length > self._max_message_bytes:
            text = f"A message has {length} bytes; at most {self._max_message_bytes} are taken."
            raise RpcError(StatusCode.RESOURCE_EXHAUSTED, text)
        return length

    def _hold(self, rest: bytes) -> None:
        self._parts = [rest] if rest else []
        self._held_bytes = len(rest)
        self._wanted_bytes = PREFIX_BYTES
        if len(rest) >= PREFIX_BYTES:
            self._wanted_bytes += self._message_bytes(rest, 0)
