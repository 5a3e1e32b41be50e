"""What an exchange, or one call of a filter, has opened and must close when it ends.

Every turn opens one for each filter it passes, so it does no more than it must. Invariants: what is owned is closed in
reverse order, however the block ends; closing one that fails is logged, and the others are closed all the same.
"""

from __future__ import annotations

from typing import Self, TypeVar

import structlog

log = structlog.get_logger()

SourceT = TypeVar("SourceT")


class Scope:
    """An asynchronous context manager that closes what it was given to own."""

    __slots__ = ("_owned",)

    def __init__(self) -> None:
        self._owned: list[object] = []

    def own(self, source: SourceT) -> SourceT:
        """`source`, a generator or a body, closed together with the scope."""
        self._owned.append(source)
        return source

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            while self._owned:
                await close_quietly(self._owned.pop())
        finally:
            # Cancelled in between: the others are closed before that goes on.
            if self._owned:
                await self.__aexit__()


async def close_quietly(source: object) -> None:
    """Close a generator or a body. A failure is logged, so that the others are closed too."""
    aclose = getattr(source, "aclose", None)
    if aclose is None:
        return
    try:
        await aclose()
    except Exception:
        # The edge: clean-up goes on, whatever one of them does.
        log.exception("clean-up failed", source=type(source).__qualname__)
