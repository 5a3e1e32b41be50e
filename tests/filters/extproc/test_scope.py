from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from attache_filters.extproc.scope import Scope


class Closable:
    """Says when it is closed, and then fails if it is to."""

    def __init__(self, name: str, closed: list[str], failure: BaseException | None = None) -> None:
        self._name = name
        self._closed = closed
        self._failure = failure

    async def aclose(self) -> None:
        self._closed.append(self._name)
        if self._failure is not None:
            raise self._failure


async def test_scope_closes_in_reverse_what_it_owns_and_passes_the_failure_of_its_block_on() -> None:
    closed: list[str] = []

    async def block() -> None:
        async with Scope() as scope:
            scope.own(Closable("first", closed))
            scope.own("nothing to close")
            scope.own(Closable("second", closed))
            raise RuntimeError("of the block")

    with pytest.raises(RuntimeError, match="of the block"):
        await block()
    assert closed == ["second", "first"]


async def test_scope_logs_what_cannot_be_closed_and_closes_the_others() -> None:
    closed: list[str] = []
    with capture_logs() as logs:
        async with Scope() as scope:
            scope.own(Closable("first", closed))
            scope.own(Closable("second", closed, OSError("gone")))
    assert closed == ["second", "first"]
    assert [(entry["event"], entry["source"]) for entry in logs] == [("clean-up failed", "Closable")]


async def test_scope_that_is_cancelled_while_it_closes_closes_the_others_all_the_same() -> None:
    closed: list[str] = []

    async def block() -> None:
        async with Scope() as scope:
            scope.own(Closable("first", closed))
            scope.own(Closable("second", closed, asyncio.CancelledError()))
            scope.own(Closable("third", closed))

    with pytest.raises(asyncio.CancelledError):
        await block()
    assert closed == ["third", "second", "first"]
