"""Exchanges that go on when their stream has ended, because a filter has said so of its turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from attache_core.events.event import Event
from attache_core.turn.below import Below
from attache_core.types.turn import TurnRequest, Unattended
from attache_filters.extproc.loop_client import LoopClient
from attache_filters.extproc.unattended import open_unattended
from attache_filters.testing import text_events
from filters.extproc import from_envoy as envoy
from filters.extproc.hosting import WAIT_S, emitting, hosted, segment, turn_filter
from filters.extproc.test_host import turn

EVENTS = text_events("hello")


class Keeping:
    """Passes a turn on, as one that goes on or not, and keeps what came of it."""

    def __init__(self, terms: Unattended | None) -> None:
        self.begun, self.go_on, self.over = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.got: list[Event] = []
        self._terms = terms

    async def __call__(self, turn: TurnRequest, below: Below) -> AsyncIterator[Event]:
        kept = turn if self._terms is None else turn.going_on(self._terms)
        try:
            async for event in below(kept):
                self.begun.set()
                if event.is_terminal:
                    await self.go_on.wait()
                self.got.append(event)
                yield event
        finally:
            self.over.set()


TERMS = Unattended(timeout_s=60.0, max_turns=1)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("terms", "expected"), [(TERMS, EVENTS), (None, EVENTS[:-1])], ids=["goes on", "ends"])
async def test_turn_is_read_to_its_end_without_its_stream_if_its_filter_says_so(
    terms: Unattended | None, expected: list[Event], stream: bool, tmp_path: Path
) -> None:
    keeping = Keeping(terms)
    async with asyncio.timeout(WAIT_S), open_unattended(tmp_path / "flag") as unattended:
        filters = turn_filter(keeping), turn_filter(emitting(*EVENTS))
        async with hosted(segment(*filters, unattended=unattended)) as gateway:
            gateway.says(*turn(stream=stream))
            await keeping.begun.wait()
        keeping.go_on.set()
        await keeping.over.wait()

    assert keeping.got == expected


async def test_turn_that_was_answered_by_somebody_else_ends(tmp_path: Path) -> None:
    keeping = Keeping(TERMS)
    async with asyncio.timeout(WAIT_S), open_unattended(tmp_path / "flag") as unattended:
        filters = turn_filter(keeping), turn_filter(emitting(*EVENTS))
        async with hosted(segment(*filters, unattended=unattended)) as gateway:
            gateway.says(*turn())
            await keeping.begun.wait()
            gateway.says(envoy.response_headers(504), envoy.response_body(b"late", end=True))
            assert (await gateway.gets_response())[1] == b"late"
        await keeping.over.wait()

    assert keeping.got == EVENTS[:-1]


async def test_turn_that_goes_on_leaves_the_held_request_alone(tmp_path: Path) -> None:
    keeping, loop = Keeping(TERMS), LoopClient(str(tmp_path / "nobody"))
    async with (
        open_unattended(tmp_path / "flag") as unattended,
        hosted(segment(turn_filter(keeping), loop=loop, unattended=unattended)) as gateway,
    ):
        gateway.says(*turn())
        ((kind, status, *_),) = await gateway.gets(1)

    assert (kind, status) == ("immediate_response", 503)
