"""A child lives exactly as long as its block, and never longer than its parent."""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE

import psutil
import pytest

from attache_envoy.run.child_process import PYTHON, child_process, describe_exit

STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); signal.pause()"
OBEDIENT = "import signal; print('up', flush=True); signal.pause()"
PARENT = f"""
import asyncio, signal
from attache_envoy.run.child_process import PYTHON, child_process

async def main():
    async with child_process([*PYTHON, "-c", {STUBBORN!r}], stop_s=5, capture="stdout") as child:
        await child.stdout.readline()
        print(child.pid, flush=True)
        await child.wait()

asyncio.run(main())
"""
WAIT_S = 5


@pytest.mark.parametrize(("program", "ended_by"), [(OBEDIENT, signal.SIGTERM), (STUBBORN, signal.SIGKILL)])
async def test_the_end_of_the_block_ends_the_child(program: str, ended_by: signal.Signals) -> None:
    async with child_process([*PYTHON, "-c", program], stop_s=0.5, capture="stdout") as child:
        assert child.stdout is not None
        async with asyncio.timeout(WAIT_S):
            assert await child.stdout.readline() == b"up\n"
    assert child.returncode == -ended_by
    assert not psutil.pid_exists(child.pid)


async def test_a_child_that_ends_by_itself_keeps_its_exit_code() -> None:
    async with asyncio.timeout(WAIT_S), child_process([*PYTHON, "-c", "raise SystemExit(3)"], stop_s=1) as child:
        await child.wait()
    assert child.returncode == 3


async def test_a_child_is_in_a_session_of_its_own() -> None:
    program = "import os; print(os.getsid(0) == os.getpid(), flush=True)"
    async with child_process([*PYTHON, "-c", program], stop_s=1, capture="stdout") as child:
        assert child.stdout is not None
        async with asyncio.timeout(WAIT_S):
            assert await child.stdout.readline() == b"True\n"


async def test_a_child_whose_parent_is_killed_dies_too() -> None:
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", PARENT, stdout=PIPE)
    assert parent.stdout is not None
    async with asyncio.timeout(WAIT_S):
        child = psutil.Process(int(await parent.stdout.readline()))
        parent.kill()
        await parent.wait()
    child.wait(timeout=WAIT_S)


async def test_a_child_that_finds_its_parent_gone_does_not_start() -> None:
    from attache_envoy.run import tied_exec

    command = (sys.executable, "-I", "-S", tied_exec.__file__, "1", sys.executable, "-c", "print('started')")
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE)
    async with asyncio.timeout(WAIT_S):
        stdout, _ = await process.communicate()
    assert stdout == b""


@pytest.mark.parametrize(
    ("returncode", "text"), [(0, "exit code 0"), (2, "exit code 2"), (-9, "signal SIGKILL"), (-15, "signal SIGTERM")]
)
def test_an_exit_is_described_by_code_or_signal(returncode: int, text: str) -> None:
    assert describe_exit(returncode) == text
