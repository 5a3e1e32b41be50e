"""A text that is said in pieces, however small, and that takes no more memory than its characters do.

A list of pieces would cost some 60 bytes for each of them, so whoever cuts a text into more pieces would decide how
much memory it takes. Invariants: at most `MAX_PIECES` pieces wait to be joined; a character is copied O(log n) times.
"""

from __future__ import annotations

MAX_PIECES = 64
"""How many pieces may wait; the more, the fewer joins and the more memory for a short text."""


class GrowingText:
    """Starts empty."""

    __slots__ = ("_joined", "_pieces")

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._joined: list[str] = []
        """What was joined, in order; each is longer than the next, so there are few."""

    def __bool__(self) -> bool:
        """Whether anything was said."""
        return bool(self._pieces or self._joined)

    @property
    def value(self) -> str:
        """All of it."""
        return "".join([*self._joined, *self._pieces])

    def add(self, piece: str) -> None:
        """Say more."""
        pieces = self._pieces
        pieces.append(piece)
        if len(pieces) >= MAX_PIECES:
            self._join()

    def replace(self, text: str) -> None:
        """Make it another text, or, with an empty one, free it."""
        self._pieces, self._joined = [], [text] if text else []

    def _join(self) -> None:
        text = "".join(self._pieces)
        while self._joined and len(self._joined[-1]) <= len(text):
            text = self._joined.pop() + text
        self._joined.append(text)
        self._pieces = []
