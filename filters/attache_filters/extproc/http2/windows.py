"""The window that we give to a peer, for one stream or for the connection. Source: RFC 9113, sections 5.2 and 6.9.

Invariant: what the peer may still send, what the layer above has not yet consumed, and what was consumed but not yet
announced add up to the size of the window; no byte is lost or invented.
"""

from __future__ import annotations


class ReceiveWindow:
    """Counts what comes in against what was announced.

    Attributes:
        available: what the peer may send now; negative after the window was made smaller.
        unconsumed: what came and is with the layer above.
    """

    __slots__ = ("_credit", "_size", "available", "unconsumed")

    def __init__(self, size: int) -> None:
        self._size = size
        self._credit = 0
        self.available = size
        self.unconsumed = 0

    def resize(self, size: int) -> None:
        """Take another size, as the peer does for its open streams when it reads our SETTINGS."""
        self.available += size - self._size
        self._size = size

    def take(self, size: int) -> bool:
        """Count what came; whether the peer was allowed to send it."""
        self.available -= size
        self.unconsumed += size
        return self.available >= 0

    def give(self, size: int) -> int:
        """Count what was consumed; the increment to announce now: nothing until it is half of the window."""
        self.unconsumed -= size
        self._credit += size
        if self._credit * 2 < self._size:
            return 0
        increment, self._credit = self._credit, 0
        self.available += increment
        return increment
