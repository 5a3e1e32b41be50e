"""Whose CPU time it was: the measured gateway's, the model server's, the load generator's."""

from __future__ import annotations

import time
from dataclasses import dataclass

from benchmarks.processes import cpu_s_of
from benchmarks.targets import Target


@dataclass(frozen=True, slots=True)
class CpuSeconds:
    """CPU time so far: of the target's processes (none of its own when it is the model server), and of the others."""

    target: float
    model: float
    generator: float


def cpu_s(target: Target, model: Target) -> CpuSeconds:
    """The CPU time of all, now; this process is the load generator."""
    own = cpu_s_of(target.pid) if target.pid != model.pid else 0.0
    return CpuSeconds(own, cpu_s_of(model.pid), time.process_time())
