"""CPU time and memory of a set of processes and all their descendants, from the kernel's own counts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import psutil


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process tree has used.

    Attributes:
        cpu_s: user and system time since its processes started; of processes that have ended, nothing.
        rss_bytes: resident memory, shared pages counted in each process that maps them.
        processes: how many there are.
    """

    cpu_s: float
    rss_bytes: int
    processes: int


def usage_of(pid: int) -> Usage:
    """The usage of `pid` and its descendants, now; nothing of those that are gone."""
    cpu_s = 0.0
    rss_bytes = 0
    count = 0
    for process in _tree(pid):
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            rss_bytes += process.memory_info().rss
            cpu_s += times.user + times.system
            count += 1
    return Usage(cpu_s, rss_bytes, count)


def _tree(pid: int) -> Iterator[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        root = psutil.Process(pid)
        yield root
        yield from root.children(recursive=True)
