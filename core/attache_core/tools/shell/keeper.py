"""`python -I -S keeper.py PARENT_PID LIMITS PROGRAM ARGUMENT…`: run PROGRAM under limits, and leave nothing behind.

LIMITS is a JSON object of names of `resource` and numbers. The exit status is the program's, 128 and the signal's
number where one killed it, 127 where it cannot be run. When the program has ended, on SIGTERM, and when the parent
dies, all processes that came of the program are killed, those that moved to a session of their own included: they
become children of this one when their parents die.

Run as a file, not imported: it must start fast, so it uses nothing but the standard library's core. Linux only
(`prctl(2)`, PR_SET_PDEATHSIG and PR_SET_CHILD_SUBREAPER; `proc(5)`). It is a program of its own, and not a
`preexec_fn`, because code between fork and exec of a process with threads may deadlock.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
from contextlib import suppress
from typing import NoReturn

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
CANNOT_RUN = 127
_KILLED = 128
_HEARD = {signal.SIGCHLD, signal.SIGTERM}


def main(arguments: list[str]) -> int:
    """The exit status."""
    parent, limits, command = int(arguments[0]), json.loads(arguments[1]), arguments[2:]
    signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    # The parent may have died before the calls above: then nobody will ever be told.
    if os.getppid() != parent:
        return CANNOT_RUN
    keeper = os.getpid()
    program = os.fork()
    if program == 0:
        _become(command, limits, libc, keeper)
    status = _wait(program)
    _end_descendants()
    return status


def _become(command: list[str], limits: dict[str, int], libc: ctypes.CDLL, keeper: int) -> NoReturn:
    try:
        os.setsid()
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == keeper:
            for name, wanted in limits.items():
                _limit(getattr(resource, name), wanted)
            for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python, and by whatever it becomes
                signal.signal(ignored, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            os.execvpe(command[0], command, _environment())  # noqa: S606 - the operator names the program
    except OSError as error:
        os.write(2, f"{command[0]} cannot be run: {error.strerror}\n".encode(errors="replace"))
    finally:
        os._exit(CANNOT_RUN)


def _environment() -> dict[bytes, bytes]:
    """As it was given: Python adds a variable to its own where there is no locale."""
    file = os.open("/proc/self/environ", os.O_RDONLY)
    given = b"".join(iter(lambda: os.read(file, 65536), b""))
    os.close(file)
    pairs = (variable.partition(b"=") for variable in given.split(b"\0") if variable)
    return {name: value for name, _, value in pairs}


def _limit(kind: int, wanted: int) -> None:
    _, hard = resource.getrlimit(kind)
    bound = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(kind, (bound, bound))


def _wait(program: int) -> int:
    """Until the program has ended or this is to end."""
    while signal.sigwait(_HEARD) != signal.SIGTERM:
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == program:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else _KILLED - code
            if pid == 0:
                break
    return _KILLED + signal.SIGTERM


def _end_descendants() -> None:
    """Kill and reap until there are none; those that are born meanwhile come to be children, and are next."""
    with suppress(ChildProcessError):
        while True:
            for pid in _descendants(os.getpid()):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            os.waitpid(-1, 0)
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass  # to look for all anew after each one of many would take longer than we are given


def _descendants(ancestor: int) -> list[int]:
    parents = dict(_processes())
    found = {ancestor}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found - {ancestor})


def _processes() -> list[tuple[int, int]]:
    """Each process and its parent."""
    known = []
    for place in os.scandir("/proc"):
        if place.name.isdecimal():
            with suppress(OSError):  # it has ended
                known.append((int(place.name), _parent(place.path)))
    return known


def _parent(place: str) -> int:
    file = os.open(f"{place}/stat", os.O_RDONLY)
    try:
        return int(os.read(file, 4096).rpartition(b")")[2].split()[1])
    finally:
        os.close(file)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
