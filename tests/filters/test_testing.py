"""The harness for filter authors accepts what keeps the contract and names what does not."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from attache_core.errors import ClientError
from attache_core.events.event import Event
from attache_core.turn.below import Below
from attache_core.types.turn import TurnRequest
from attache_filters.testing import answering, check_turn_filter, run_turn, text_events
from filters.extproc.hosting import emitting, pass_turn, turn_filter

EVENTS = text_events("hello")


refuses = emitting(then=ClientError("No."))


async def shouts(turn: TurnRequest, below: Below) -> AsyncIterator[Event]:
    async for event in below(turn):
        yield event


async def renumbers(turn: TurnRequest, below: Below) -> AsyncIterator[Event]:
    async for event in below(turn):
        yield Event(event.type, {**event.data, "sequence_number": 7})


async def drops_item_ends(turn: TurnRequest, below: Below) -> AsyncIterator[Event]:
    number = 0
    async for event in below(turn):
        if event.type != "response.output_item.done":
            yield Event(event.type, {**event.data, "sequence_number": number})
            number += 1


async def differs_when_streamed(turn: TurnRequest, below: Below) -> AsyncIterator[Event]:
    async for event in below(turn):
        if event.is_terminal and turn.stream:
            yield Event(event.type, {**event.data, "response": {**event.data["response"], "output": []}})
        else:
            yield event


@pytest.mark.parametrize("run", [pass_turn, shouts])
async def test_filter_that_keeps_the_contract_passes(run: Callable[..., Any]) -> None:
    await check_turn_filter(turn_filter(run))


@pytest.mark.parametrize(
    ("run", "complaint"),
    [
        (renumbers, "the sequence numbers are"),
        (drops_item_ends, "are never done"),
        (differs_when_streamed, "'output' of the response depends on whether it is streamed"),
    ],
)
async def test_filter_that_breaks_the_contract_is_told_how(run: Callable[..., Any], complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        await check_turn_filter(turn_filter(run))


async def test_errors_before_the_first_event_are_raised_to_the_test() -> None:
    with pytest.raises(ClientError):
        await run_turn(turn_filter(refuses), TurnRequest({}), answering(EVENTS))


async def test_scripted_below_remembers_its_turns_and_repeats_its_last_answer() -> None:
    below = answering(EVENTS[-1:], EVENTS)
    turn = TurnRequest({"model": "m"})
    counts = [len(await run_turn(turn_filter(pass_turn), turn, below)) for _ in range(3)]
    assert (counts, below.turns) == ([1, 9, 9], [turn] * 3)
