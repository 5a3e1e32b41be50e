"""What signals do to the job of a command."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from attache_envoy.run.failure import GatewayFailed
from attache_envoy.run.service import StopSignals, run_until_stopped


async def test_a_job_that_ends_by_itself_gives_the_exit_code() -> None:
    async def job(_: StopSignals) -> int:
        return 7

    assert await run_until_stopped(job, stopped_code=0) == 7


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_that_is_waited_for_lets_the_job_end(number: signal.Signals) -> None:
    async def job(signals: StopSignals) -> int:
        asyncio.get_running_loop().call_soon(os.kill, os.getpid(), number)
        await signals.wait()
        return 0

    assert await run_until_stopped(job, stopped_code=1) == 0


async def test_a_signal_before_the_job_waits_for_one_interrupts_it() -> None:
    async def job(_: StopSignals) -> int:
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.Event().wait()
        return 0

    assert await run_until_stopped(job, stopped_code=3) == 3


async def test_a_second_signal_interrupts_what_the_job_does_after_the_first() -> None:
    async def job(signals: StopSignals) -> int:
        asyncio.get_running_loop().call_soon(os.kill, os.getpid(), signal.SIGTERM)
        await signals.wait()
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.Event().wait()
        return 0

    assert await run_until_stopped(job, stopped_code=0) == 128 + signal.SIGINT


async def test_a_failure_leaves_without_the_groups_around_it() -> None:
    async def job(_: StopSignals) -> int:
        raise ExceptionGroup("around", [GatewayFailed("gone")])

    with pytest.raises(GatewayFailed, match=r"^gone$"):
        await run_until_stopped(job, stopped_code=0)
