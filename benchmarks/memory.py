"""What streams take of a gateway's memory while they are open, and what they leave behind.

As many streams as are measured are opened in three waves, slow ones, so that nothing piles up. What one takes is what
all of the first wave added to the gateway as it was before, divided by how many there are: buffers, pools and code that
the first streams of a process bring with them are in it. What one leaves behind is what the last wave added to what the
ones before it had left, since a process keeps what it will use again. Both are of anonymous memory.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass

from attache_core.json_codec import encode
from benchmarks.plan import QUESTION
from benchmarks.processes import Memory, memory_of
from benchmarks.streams import Streams
from benchmarks.targets import Target

MODEL = "bench-16@8"
RAMP_S = 0.5
DRAIN_S = 20.0
SETTLE_S = 0.3
"""From the last stream's end until the gateway has put it away."""

WAVES = 3


@dataclass(frozen=True, slots=True)
class MemoryResult:
    """Of all processes of one target, once; in bytes.

    Attributes:
        idle: after its first answer.
        in_flight: what a stream takes, see the module docstring.
        left: what a stream leaves behind.
        failures: streams that did not end well, by what was wrong.
    """

    idle: Memory
    streams: int
    in_flight: float
    left: float
    failures: dict[str, int]

    @property
    def errors(self) -> int:
        """How many streams did not end well."""
        return sum(self.failures.values())


async def measure_memory(target: Target, count: int) -> MemoryResult:
    """Measure `count` streams, in each wave."""
    idle = memory_of(target.pid)
    failures: Counter[str] = Counter()
    open_bytes: list[int] = []
    ended_bytes: list[int] = []
    for _ in range(WAVES):
        body = encode({"model": MODEL, "input": QUESTION, "stream": True, "store": target.keeps_state})
        streams = Streams(target.url, body, count)
        await streams.begin(RAMP_S, DRAIN_S)
        open_bytes.append(memory_of(target.pid).anonymous)
        await streams.end(DRAIN_S)
        await asyncio.sleep(SETTLE_S)
        ended_bytes.append(memory_of(target.pid).anonymous)
        failures += streams.failures
    return MemoryResult(
        idle=idle,
        streams=count,
        in_flight=(open_bytes[0] - idle.anonymous) / count,
        left=(ended_bytes[-1] - ended_bytes[-2]) / count,
        failures=dict(failures),
    )
