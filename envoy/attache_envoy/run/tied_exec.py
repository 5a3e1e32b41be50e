"""`python -I -S tied_exec.py PARENT_PID PROGRAM ARGUMENT…`: become PROGRAM, and die when the parent does.

Run as a file, not imported: it must start fast, so it uses nothing but the standard library's core. Linux only
(`prctl(2)`, PR_SET_PDEATHSIG); the setting survives the exec. It is a program of its own, and not a `preexec_fn`,
because code between fork and exec of a process with threads may deadlock.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """Tie this process to its parent, then replace it."""
    parent, command = int(arguments[0]), arguments[1:]
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # The parent may have died before the call above: then nobody will ever be told.
    if os.getppid() == parent:
        os.execv(command[0], command)  # noqa: S606 - no shell wanted, and the command is ours


if __name__ == "__main__":
    main(sys.argv[1:])
