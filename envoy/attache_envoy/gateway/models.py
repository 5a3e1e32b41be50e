"""Which upstream has which models: the patterns of `upstreams: {…: {models: […]}}`, and which of them counts.

A pattern is a model's name, or the beginning of names with a `*` after it. Invariant: a name beats every beginning, and
a longer beginning a shorter one, so that the order of the file does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

from pydantic import AfterValidator

ANY = "*"
"""What stands for the rest of a name."""


def _check_pattern(pattern: str) -> str:
    name = pattern.removesuffix(ANY)
    if not name:
        raise ValueError("name a model, or how its name begins: an upstream without `models` takes all others.")
    if ANY in name or any(character.isspace() for character in name):
        raise ValueError(f"{pattern!r}: a `*` may only be at the end, as in `gpt-*`, and there is no white space.")
    return pattern


ModelPattern = Annotated[str, AfterValidator(_check_pattern)]
"""`gpt-5.2`, or `gpt-*`."""


def is_beginning(pattern: str) -> bool:
    """Whether a pattern stands for all names that begin so."""
    return pattern.endswith(ANY)


def by_precedence(models: Mapping[str, Iterable[str]]) -> list[tuple[str, str]]:
    """Every pattern with its upstream, the ones that count first before the others; `models` are those of each."""
    pairs = [(pattern, upstream) for upstream, patterns in models.items() for pattern in patterns]
    return sorted(pairs, key=lambda pair: (is_beginning(pair[0]), -len(pair[0])))


def given_twice(models: Mapping[str, Iterable[str]]) -> list[tuple[str, int, str]]:
    """Each pattern that another upstream, or the same one, has already: its upstream, its place there, and whose."""
    first: dict[str, str] = {}
    twice = []
    for upstream, patterns in models.items():
        for place, pattern in enumerate(patterns):
            if pattern in first:
                twice.append((upstream, place, first[pattern]))
            first.setdefault(pattern, upstream)
    return twice
