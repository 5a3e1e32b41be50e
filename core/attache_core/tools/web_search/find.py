"""Where a text stands in a page, with what stands around it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Found:
    """The places of a pattern.

    Attributes:
        excerpts: the first ones, in their order; places near each other share one.
        count: of all places.
    """

    excerpts: tuple[str, ...]
    count: int


def find_in_text(text: str, pattern: str, *, context_chars: int, max_matches: int) -> Found:
    """Look for the words of `pattern`, in any case, whatever white space is between them; no regular expression.

    The time that it takes grows with the text alone, whatever page and pattern are.
    """
    text = " ".join(text.split())
    places = list(_places(_folded(text), _folded(" ".join(pattern.split()))))
    spans = _joined(places[:max_matches], context_chars, len(text))
    return Found(tuple(_excerpt(text, start, end) for start, end in spans), len(places))


def _folded(text: str) -> str:
    """The text in lower case, each character in its place."""
    lower = text.lower()
    if len(lower) != len(text):
        lower = "".join(character.lower()[0] for character in text)
    return lower.replace("\u03c2", "\u03c3")  # a sigma is the same at the end of a word


def _places(text: str, pattern: str) -> Iterator[tuple[int, int]]:
    start = text.find(pattern) if pattern else -1
    while start >= 0:
        end = start + len(pattern)
        yield start, end
        start = text.find(pattern, end)


def _joined(places: list[tuple[int, int]], context_chars: int, length: int) -> Iterator[tuple[int, int]]:
    """The places with their context; those that touch are one."""
    begun: tuple[int, int] | None = None
    for start, end in places:
        wide = (max(start - context_chars, 0), min(end + context_chars, length))
        if begun is not None and wide[0] <= begun[1]:
            begun = (begun[0], wide[1])
            continue
        if begun is not None:
            yield begun
        begun = wide
    if begun is not None:
        yield begun


def _excerpt(text: str, start: int, end: int) -> str:
    before, after = "…" if start else "", "…" if end < len(text) else ""
    return f"{before}{text[start:end].strip()}{after}"
