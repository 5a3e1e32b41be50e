"""Streams at a model's speed: how much later each event comes through a gateway, and how much CPU that takes.

All streams are opened first; then, for a while, CPU is counted, and of the events sent in that while how late they
came, however long that took. What a gateway adds is what it is later than the model server's own stream of the same
run, whose lateness is the load generator's. It says nothing where the model server could not send as much as it should,
which shows in how much came. A gateway that keeps state stores the streams.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from math import ceil
from time import monotonic_ns, perf_counter

from attache_core.json_codec import encode
from benchmarks.load import percentile
from benchmarks.plan import QUESTION
from benchmarks.streams import Streams
from benchmarks.targets import Target
from benchmarks.usage import cpu_s

EVENTS_PER_S = 50
RAMP_S = 1.0
BEGIN_S = 3.0
"""Streams go on for so long before they are measured: until then the last of them must have begun."""

SETTLE_S = 0.3
DRAIN_S = 10.0
KEPT_UP = 0.9
"""The share of all events that must be deltas which were sent and came; some few of each stream are other events."""


@dataclass(frozen=True, slots=True)
class PacedResult:
    """Streams of `EVENTS_PER_S` events, once.

    Attributes:
        events_per_s: deltas that were sent while it was measured and came, by the length of that while.
        delay_p50_ms: from when the model server sent a delta until its event was complete here.
        delay_p99_ms: the same.
        target_cores: CPU seconds of the gateway's processes a second; of the others likewise.
        failures: streams that did not end well, or were over before they had been measured, by what was wrong.
    """

    streams: int
    store: bool
    events_per_s: float
    delay_p50_ms: float
    delay_p99_ms: float
    target_cores: float
    model_cores: float
    generator_cores: float
    failures: dict[str, int]

    @property
    def errors(self) -> int:
        """How many streams did not end well."""
        return sum(self.failures.values())

    @property
    def kept_up(self) -> bool:
        """Whether the model server sent what it should: what the delays are worth hangs on it."""
        return self.events_per_s >= KEPT_UP * EVENTS_PER_S * self.streams


async def measure_paced(target: Target, model: Target, count: int, duration_s: float) -> PacedResult:
    """Measure `count` streams for `duration_s`."""
    deltas = ceil(EVENTS_PER_S * (BEGIN_S + SETTLE_S + duration_s))
    named = f"bench-{deltas}@{EVENTS_PER_S}"
    body = encode({"model": named, "input": QUESTION, "stream": True, "store": target.keeps_state})
    streams = Streams(target.url, body, count)
    await streams.begin(RAMP_S, DRAIN_S)
    await asyncio.sleep(SETTLE_S)
    before, from_us, started_at = cpu_s(target, model), monotonic_ns() // 1000, perf_counter()
    await asyncio.sleep(duration_s)
    spent, until_us, elapsed_s = cpu_s(target, model), monotonic_ns() // 1000, perf_counter() - started_at
    streams.failures["over too early"] = count - streams.open - streams.failures.total()
    await streams.end(DRAIN_S)
    delays_ms = [
        delta.delay_us / 1000
        for reader in streams.readers
        for delta in reader.deltas
        if from_us <= delta.sent_us < until_us
    ]
    return PacedResult(
        streams=count,
        store=target.keeps_state,
        events_per_s=len(delays_ms) / elapsed_s,
        delay_p50_ms=percentile(delays_ms, 50),
        delay_p99_ms=percentile(delays_ms, 99),
        target_cores=(spent.target - before.target) / elapsed_s,
        model_cores=(spent.model - before.model) / elapsed_s,
        generator_cores=(spent.generator - before.generator) / elapsed_s,
        failures=dict(+streams.failures),
    )
