"""How many CPUs this process may keep busy: what worker processes and Envoy's threads are counted by.

Knows Linux: the CPUs that the scheduler may put this process on, and the quotas of its control group and of those above
it, version 2. Unaware of what the CPUs are for, and of quotas of version 1. Sources: sched_setaffinity(2), cgroups(7),
"cpu.max" in the kernel's cgroup-v2 documentation.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

_V2 = "0::"
"""How the line of `/proc/self/cgroup` begins that names the group of version 2."""


def usable_cpus(root: Path = Path("/")) -> int:
    """At least 1. A quota of one and a half CPUs counts as two: more than one thread can use it.

    Args:
        root: where `proc` and `sys` are.
    """
    return max(1, min([len(os.sched_getaffinity(0)), *map(math.ceil, _quotas(root))]))


def _quotas(root: Path) -> Iterator[float]:
    """The quotas that hold for this process, in CPUs."""
    mounted = root / "sys/fs/cgroup"
    for line in _text(root / "proc/self/cgroup").splitlines():
        if line.startswith(_V2):
            group = PurePosixPath(line.removeprefix(_V2).lstrip("/"))
            for each in (group, *group.parents):
                yield from _quota(_text(mounted / each / "cpu.max"))


def _quota(cpu_max: str) -> Iterator[float]:
    """`QUOTA PERIOD` in microseconds; no quota is `max`."""
    match cpu_max.split():
        case [quota, period] if quota.isdecimal() and period.isdecimal() and int(period):
            yield int(quota) / int(period)


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
