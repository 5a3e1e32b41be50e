"""What a command prints, as far as it is kept: the beginning and the end of it. Pure."""

from __future__ import annotations

_REPLACEMENT = "\ufffd"


class Printed:
    """Feed it the bytes of one output; it never holds more than a few times `max_bytes`."""

    def __init__(self, max_bytes: int) -> None:
        self._head_bytes = max_bytes - max_bytes // 2
        self._tail_bytes = max_bytes // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._fed = 0

    def feed(self, data: bytes) -> None:
        """More of it."""
        self._fed += len(data)
        room = self._head_bytes - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * self._tail_bytes:
            self._cut()

    @property
    def text(self) -> str:
        """All of it, or its beginning and its end with a line between them that says how much is left out.

        What is no UTF-8, and NUL, which stores and servers refuse, is replaced by U+FFFD.
        """
        self._cut()
        left_out = self._fed - len(self._head) - len(self._tail)
        mark = f"\n[{left_out} bytes left out]\n" if left_out else ""
        return f"{_text(self._head)}{mark}{_text(self._tail)}" if mark else _text(self._head + self._tail)

    def _cut(self) -> None:
        del self._tail[: max(0, len(self._tail) - self._tail_bytes)]


def _text(data: bytearray) -> str:
    return data.decode("utf-8", "replace").replace("\0", _REPLACEMENT)
