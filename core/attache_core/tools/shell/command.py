"""One command: started, read, ended. Nothing that came of it outlives the coroutine that runs it.

Knows processes and pipes; is unaware of calls, items and turns. The command is run by `keeper`, in a session of its
own, with nothing of this process but its outputs. What it prints is read as it comes and kept in part, so it never
waits for us; past a bound it is killed. The keeper has both outputs open until all that it keeps has ended, so their
end is the command's.

Started with `subprocess`, in the thread of the event loop: it closes every other file in the child and runs no code of
other libraries there, as event loops that fork do (gRPC's crashes), and the keeper is told of the death of the thread
that started it.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from signal import SIGCONT
from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired
from typing import IO

from attache_core.json_codec import Json
from attache_core.tools.shell import keeper
from attache_core.tools.shell.printed import Printed
from attache_core.tools.shell.settings import ShellSettings

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
KILL_S = 5.0
"""Seconds for the end of what the keeper keeps, and again for its own end; then it is killed."""

_KILLED = 128 + 9


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one command may take; never more than the settings allow.

    Attributes:
        timeout_s: seconds.
        max_output_bytes: what is kept of each output.
    """

    timeout_s: float
    max_output_bytes: int


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """What came of it; `exit_code` is None where the time was up."""

    stdout: str
    stderr: str
    exit_code: int | None

    @property
    def public(self) -> Json:
        """As in a `shell_call_output`."""
        code = self.exit_code
        outcome = {"type": "timeout"} if code is None else {"type": "exit", "exit_code": code}
        return {"created_by": None, "outcome": outcome, "stderr": self.stderr, "stdout": self.stdout}


async def run_command(command: str, folder: Path, settings: ShellSettings, bounds: Bounds) -> CommandOutput:
    """Run a command, of which `folder` is the working folder and the home.

    Raises:
        OSError: no process can be started.
    """
    argv = (sys.executable, "-I", "-S", keeper.__file__, str(os.getpid()), json.dumps(_limits(settings)))
    process = Popen(  # noqa: S603, ASYNC220 - see the module docstring; it takes a millisecond
        [*argv, *settings.command, command],
        bufsize=0,
        cwd=folder,
        env=environment_of(folder, settings),
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
        start_new_session=True,
    )
    output = _Output(process, bounds.max_output_bytes, settings.max_written_bytes)
    timed_out = False
    try:
        async with asyncio.timeout(bounds.timeout_s):
            await output.read()
    except TimeoutError:
        timed_out = True
    finally:
        await _end(process, output)
    return output.result(None if timed_out else process.returncode)


def environment_of(folder: Path, settings: ShellSettings) -> Mapping[str, str]:
    """All variables of a command; none is inherited."""
    return {"PATH": DEFAULT_PATH, "HOME": str(folder), "LANG": "C.UTF-8", **settings.environment}


def _limits(settings: ShellSettings) -> Mapping[str, int]:
    return {
        "RLIMIT_AS": settings.max_memory_bytes,
        "RLIMIT_CORE": 0,
        "RLIMIT_FSIZE": settings.max_file_bytes,
        "RLIMIT_NOFILE": settings.max_open_files,
        "RLIMIT_NPROC": settings.max_processes,
    }


async def _end(process: Popen[bytes], output: _Output) -> None:
    """Have the keeper kill what is left, also if the caller is cancelled meanwhile: nobody else could find it."""
    try:
        process.terminate()
        process.send_signal(SIGCONT)  # a command may have stopped its keeper
        async with asyncio.timeout(KILL_S):
            await output.ended.wait()
    except TimeoutError:
        pass
    finally:
        output.close()
        await asyncio.to_thread(_reap, process)


def _reap(process: Popen[bytes]) -> None:
    """In a thread, because that ends even if nobody waits for it any more."""
    try:
        process.wait(KILL_S)
    except TimeoutExpired:
        process.kill()
        process.wait()


class _Output:
    """Both outputs of a command.

    Attributes:
        ended: whether both have ended.
    """

    def __init__(self, process: Popen[bytes], max_kept_bytes: int, max_written_bytes: int) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self.ended = asyncio.Event()
        self._process = process
        self._stdout = _Pipe(self, process.stdout, Printed(max_kept_bytes))
        self._stderr = _Pipe(self, process.stderr, Printed(max_kept_bytes))
        self._max_written_bytes = max_written_bytes
        self._room = max_written_bytes

    async def read(self) -> None:
        """Returns when both have ended."""
        for pipe in (self._stdout, self._stderr):
            await pipe.open()
        await self.ended.wait()

    def take(self, count: int) -> bool:
        """Whether that many bytes more may be kept; the command is killed where they are too many."""
        if self._room >= 0:
            self._room -= count
            if self._room < 0:
                self._process.terminate()
        return self._room >= 0

    def note_end(self) -> None:
        """One of the two has ended."""
        if self._stdout.has_ended and self._stderr.has_ended:
            self.ended.set()

    def close(self) -> None:
        """Read no more."""
        self._stdout.close()
        self._stderr.close()

    def result(self, exit_code: int | None) -> CommandOutput:
        """All that came of the command."""
        stdout, stderr = self._stdout.printed.text, self._stderr.printed.text
        if self._room < 0:
            note = f"[killed: it wrote more than {self._max_written_bytes} bytes]\n"
            return CommandOutput(stdout, stderr + note, _KILLED)
        return CommandOutput(stdout, stderr, exit_code)


class _Pipe(asyncio.Protocol):
    """One of them."""

    def __init__(self, output: _Output, file: IO[bytes], printed: Printed) -> None:
        self.printed = printed
        self.has_ended = False
        self._output = output
        self._file = file
        self._transport: asyncio.BaseTransport | None = None

    async def open(self) -> None:
        """Begin to read."""
        self._transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: self, self._file)

    def close(self) -> None:
        """Read no more."""
        (self._transport or self._file).close()

    def data_received(self, data: bytes) -> None:
        if self._output.take(len(data)):
            self.printed.feed(data)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self.has_ended = True
        self._output.note_end()
