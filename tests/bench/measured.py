"""One measured load, and one measurement of paced streams, from which tests make theirs."""

from __future__ import annotations

from benchmarks.measure import CellResult
from benchmarks.paced import PacedResult

CELL = CellResult(
    kind="json",
    store=False,
    connections=16,
    requests_per_s=1000.0,
    events_per_s=0.0,
    p50_ms=1.0,
    p99_ms=4.0,
    first_event_p50_ms=1.0,
    target_cpu_ms=0.0,
    model_cpu_ms=0.25,
    generator_cpu_ms=0.5,
    responses=1000,
    failures={},
)
PACED = PacedResult(
    streams=64,
    store=True,
    events_per_s=3200.0,
    delay_p50_ms=0.5,
    delay_p99_ms=2.0,
    target_cores=0.25,
    model_cores=0.125,
    generator_cores=0.0625,
    failures={},
)
