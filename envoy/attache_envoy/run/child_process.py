"""One child process, for as long as a block runs.

Knows how a child of ours is started and ended: in a session of its own, so that Ctrl-C reaches the parent alone and
the parent decides the order; tied to the parent, so that it cannot outlive it, whatever kills the parent; its output
on our standard error, because standard output belongs to the `ready` line, unless the caller reads it. Unaware of what
the child is.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Literal

from attache_envoy.run import tied_exec

STDERR_FD = 2

Capture = Literal["stdout", "stderr"]

PYTHON = (sys.executable, "-P")
"""This interpreter, without the working directory on its import path: a user's `mcp.py` must not shadow a package."""


@asynccontextmanager
async def child_process(
    command: Sequence[str], *, stop_s: float, capture: Capture | None = None
) -> AsyncIterator[Process]:
    """Run `command` (a path and its arguments) while the block runs; it may end earlier, the block is not told.

    At the end of the block the child gets SIGTERM, and SIGKILL after `stop_s` seconds. It has ended when this returns.

    Args:
        capture: goes to `process.stdout` or `process.stderr` instead, which the block reads to its end.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", tied_exec.__file__, str(os.getpid())),
        *command,
        stdin=DEVNULL,
        stdout=PIPE if capture == "stdout" else STDERR_FD,
        stderr=PIPE if capture == "stderr" else STDERR_FD,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        await _stop(process, stop_s)


async def _stop(process: Process, stop_s: float) -> None:
    try:
        _signal(process, signal.SIGTERM)
        with suppress(TimeoutError):
            async with asyncio.timeout(stop_s):
                await process.wait()
    finally:
        _signal(process, signal.SIGKILL)
        await process.wait()


def _signal(process: Process, number: signal.Signals) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.send_signal(number)


def describe_exit(returncode: int) -> str:
    """`exit code 1`, or `signal SIGKILL` for a negative return code."""
    if returncode >= 0:
        return f"exit code {returncode}"
    return f"signal {signal.Signals(-returncode).name}"
