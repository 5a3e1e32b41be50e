"""CPU time and memory of a process and all its descendants, from the kernel's own counts.

CPU is that of each process's own clock (clock_getcpuclockid(3)): nanoseconds, threads that have ended among them, where
/proc/PID/stat counts hundredths of a second. Memory is /proc/PID/smaps_rollup's, which takes the kernel milliseconds to
add up for each process: not to be asked for within a load.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

_CLOCK_OF_ALL_THREADS = 2
"""CPUCLOCK_SCHED, the last three bits of the id of a process's clock; before them stands the inverted process id."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What a process tree holds in memory, in bytes.

    Attributes:
        pss: pages that several processes map are divided among them: what the tree takes as a whole.
        uss: only pages that one process has for itself: what would be free if it ended.
        anonymous: what of `pss` no file stands behind, and so does not change when another process maps the same file.
        processes: how many there are.
    """

    pss: int
    uss: int
    anonymous: int
    processes: int


def cpu_s_of(pid: int) -> float:
    """The CPU time of `pid` and its descendants so far; nothing of those that are gone."""
    return sum(_cpu_s(process.pid) for process in _tree(pid))


def memory_of(pid: int) -> Memory:
    """The memory of `pid` and its descendants now; nothing of those that are gone."""
    rollups = [rollup for process in _tree(pid) if (rollup := _rollup(process.pid))]
    return Memory(
        pss=sum(rollup["Pss"] for rollup in rollups),
        uss=sum(rollup["Private_Clean"] + rollup["Private_Dirty"] for rollup in rollups),
        anonymous=sum(rollup["Pss_Anon"] for rollup in rollups),
        processes=len(rollups),
    )


def _cpu_s(pid: int) -> float:
    try:
        return time.clock_gettime(~pid << 3 | _CLOCK_OF_ALL_THREADS)
    except OSError:
        return 0.0


def _rollup(pid: int) -> dict[str, int]:
    """Bytes by name; nothing of a process that is gone, or has no memory any more."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    except OSError:
        return {}
    fields = (line.replace(":", "").split() for line in lines)
    return {name: 1024 * int(kib) for name, kib, _ in fields}


def _tree(pid: int) -> Iterator[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        root = psutil.Process(pid)
        yield root
        yield from root.children(recursive=True)
