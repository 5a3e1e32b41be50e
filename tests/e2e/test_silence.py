"""What may be silent, and for how long: a turn for ever, and so may a busy worker be for seconds."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import pytest
import pytest_asyncio

from attache_core.testing.model_script import call, function_calls, held, text
from e2e.stage import Answered, Stage, open_stage

TIMEOUTS = "timeouts: {stream_idle_s: 0.5, request_s: 0.5}\n"
LONGER_S = 0.7
BUSY_S = 3.0


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def hasty_stage(placement: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    """A gateway that is impatient with all but turns."""
    async with open_stage(placement, tmp_path_factory.mktemp(f"hasty-{placement}"), gateway_yaml=TIMEOUTS) as stage:
        yield stage


async def test_turn_may_be_silent_in_any_round(hasty_stage: Stage, stream: bool) -> None:
    first, second = asyncio.Event(), asyncio.Event()
    hasty_stage.model.play(held(first, function_calls(call("echo", {"text": "x"}))), held(second, text("Done.")))

    async with asyncio.TaskGroup() as tasks:
        turn = tasks.create_task(hasty_stage.ask(input="Hi", tools=[hasty_stage.mcp_tool()], stream=stream))
        for round_number, answered in enumerate((first, second), 1):
            await hasty_stage.model.wait_until_asked(round_number)
            await still_waits(turn, LONGER_S)
            answered.set()

    assert (turn.result().status, turn.result().text) == (200, "Done.")


async def test_worker_that_is_busy_for_seconds_stays_healthy_and_its_turn_completes(stage: Stage, stream: bool) -> None:
    stage.model.play(text("At last."))

    async with asyncio.TaskGroup() as tasks:
        with stopped(stage.gateway.workers.pids[0]):
            turn = tasks.create_task(stage.ask(input="Hi", stream=stream))
            await still_waits(turn, BUSY_S)
            assert await stage.gateway.admin.healthy_workers() == (1, 1)

    assert (turn.result().status, turn.result().text) == (200, "At last.")


async def still_waits(turn: asyncio.Task[Answered], for_s: float) -> None:
    """The turn has no answer within this time."""
    await asyncio.wait({turn}, timeout=for_s)
    assert not turn.done()


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """A process that does nothing meanwhile."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
