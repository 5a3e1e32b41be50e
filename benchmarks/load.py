"""A closed loop: so many connections, each with one request under way at any time, for so long.

What is measured is what clients see. A response that is not 200, or has fewer events than it must, is an error and
counts as nothing else.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

from benchmarks.exchange import ClientConnection, Exchanged, connect, request_bytes

DRAIN_S = 30.0
"""How long responses under way at the end may take."""


@dataclass(frozen=True, slots=True)
class Load:
    """What to send.

    Attributes:
        connections: how many requests are under way at once.
        duration_s: how long new requests are sent.
        min_events: fewer events in a response are an error.
    """

    url: str
    body: bytes
    connections: int
    duration_s: float
    min_events: int = 0


@dataclass(frozen=True, slots=True)
class Measured:
    """What came of a load.

    Attributes:
        latencies_s: of each good response, in no order.
        first_events_s: of each good response, in no order.
        events: over all good responses.
        elapsed_s: from the first request to the last response.
        failures: how many bad responses, by what was wrong: the status, `lost` connections, `too few events`, `late`.
    """

    latencies_s: list[float]
    first_events_s: list[float]
    events: int
    elapsed_s: float
    failures: dict[str, int]

    @property
    def errors(self) -> int:
        """How many responses were bad."""
        return sum(self.failures.values())

    @property
    def requests_per_s(self) -> float:
        """Good responses a second."""
        return len(self.latencies_s) / self.elapsed_s if self.elapsed_s else 0.0

    @property
    def events_per_s(self) -> float:
        """Events of good responses a second."""
        return self.events / self.elapsed_s if self.elapsed_s else 0.0


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that at least `percent` of all values do not exceed (nearest rank); NaN of nothing."""
    if not values:
        return float("nan")
    ordered = sorted(values)
    rank = -(-len(ordered) * percent // 100)
    return ordered[max(int(rank), 1) - 1]


async def run_load(load: Load) -> Measured:
    """Connect, send for the load's duration, wait for the last responses, disconnect."""
    return await _Loop(load).run()


class _Loop:
    """The state of one run."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._request = request_bytes(load.url, load.body)
        self._latencies: list[float] = []
        self._first_events: list[float] = []
        self._events = 0
        self._failures: Counter[str] = Counter()
        self._active = 0
        self._ends_at = 0.0
        self._finished = asyncio.Event()

    async def run(self) -> Measured:
        connections = [await connect(self._load.url, self._answered) for _ in range(self._load.connections)]
        started_at = perf_counter()
        self._ends_at = started_at + self._load.duration_s
        self._active = len(connections)
        for connection in connections:
            connection.send(self._request)
        try:
            async with asyncio.timeout(self._load.duration_s + DRAIN_S):
                await self._finished.wait()
        except TimeoutError:
            self._failures["late"] += self._active
        elapsed_s = perf_counter() - started_at
        for connection in connections:
            connection.close()
        return Measured(self._latencies, self._first_events, self._events, elapsed_s, dict(self._failures))

    def _answered(self, connection: ClientConnection, exchanged: Exchanged) -> None:
        if failure := _failure(exchanged, self._load):
            self._failures[failure] += 1
        else:
            self._latencies.append(exchanged.total_s)
            self._first_events.append(exchanged.first_event_s)
            self._events += exchanged.events
        if exchanged.status and perf_counter() < self._ends_at:
            connection.send(self._request)
            return
        self._active -= 1
        if not self._active:
            self._finished.set()


def _failure(exchanged: Exchanged, load: Load) -> str | None:
    if exchanged.status != 200:
        return str(exchanged.status) if exchanged.status else "lost"
    return "too few events" if exchanged.events < load.min_events else None
