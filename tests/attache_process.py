"""The `attache` command as a process of its own, the way an operator runs it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

ATTACHE = Path(sys.executable).parent / "attache"
START_S = 30
"""Longer than any other wait: a start imports everything, several times, on a machine that may be busy."""
WAIT_S = 10


@dataclass(frozen=True, slots=True)
class Finished:
    """A command that has ended."""

    exit_code: int
    stdout: str
    stderr: str


def run_attache(directory: Path, *arguments: str, **changes: str) -> Finished:
    """Run `attache` to its end in `directory`, with changes to the environment."""
    done = subprocess.run(
        [ATTACHE, *arguments],
        cwd=directory,
        env=_environment(directory, changes),
        capture_output=True,
        text=True,
        timeout=START_S * 2,
        check=False,
    )
    return Finished(done.returncode, done.stdout, done.stderr)


class Up:
    """`attache up`, running."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self.log: list[str] = []
        """What was read of standard error so far, line by line."""

    async def ready_url(self) -> str:
        """The URL of the `ready` line."""
        assert self._process.stdout is not None
        async with asyncio.timeout(START_S):
            line = (await self._process.stdout.readline()).decode()
        assert line.startswith("ready http://"), (line, await self.rest_of_log())
        return line.removeprefix("ready ").strip()

    async def logged(self, text: str) -> str:
        """The next line of standard error with `text` in it."""
        assert self._process.stderr is not None
        async with asyncio.timeout(START_S):
            async for line in self._process.stderr:
                self.log.append(line.decode())
                if text in self.log[-1]:
                    return self.log[-1]
        raise AssertionError(f"{text!r} is not in the log:\n{''.join(self.log)}")

    async def rest_of_log(self) -> str:
        """All that is written to standard error from now until the process ends."""
        assert self._process.stderr is not None
        async with asyncio.timeout(START_S):
            return (await self._process.stderr.read()).decode()

    async def rest_of_stdout(self) -> str:
        """All that is written to standard output from now until the process ends."""
        assert self._process.stdout is not None
        async with asyncio.timeout(START_S):
            return (await self._process.stdout.read()).decode()

    def children(self) -> list[psutil.Process]:
        """Every process below it."""
        children: list[psutil.Process] = psutil.Process(self._process.pid).children(recursive=True)
        return children

    def child(self, name: str) -> psutil.Process:
        """The one process below it whose command line has `name` in it."""
        [found] = [child for child in self.children() if name in " ".join(child.cmdline())]
        return found

    def run_dir(self) -> Path:
        """The gateway's run directory, while Envoy runs."""
        command = self.child("envoy.json").cmdline()
        return Path(command[command.index("--config-path") + 1]).parent

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    async def exit_code(self) -> int:
        """Its exit code, once it has ended."""
        async with asyncio.timeout(WAIT_S):
            return await self._process.wait()


@asynccontextmanager
async def attache_up(directory: Path, *arguments: str, **changes: str) -> AsyncIterator[Up]:
    """Run `attache up` in `directory`, with one worker and on a free port, while the block runs; then it is killed."""
    process = await asyncio.create_subprocess_exec(
        *(str(ATTACHE), "up", "--listen", "127.0.0.1:0", "--workers", "1", *arguments),
        cwd=directory,
        env=_environment(directory, changes),
        stdout=PIPE,
        stderr=PIPE,
    )
    try:
        yield Up(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def assert_all_end(processes: list[psutil.Process]) -> None:
    """Each of these processes ends within `WAIT_S`."""
    _, alive = psutil.wait_procs(processes, timeout=WAIT_S)
    assert alive == []


def _environment(directory: Path, changes: Mapping[str, str]) -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(directory), "COLUMNS": "200", **changes}
