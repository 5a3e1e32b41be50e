"""What Attaché is to reach beside agentic-api, and whether a run shows it: the rows of the summary. Pure.

A figure of Attaché is that of the fused placement; stateless loads are measured with the bypass. Where a row compares
latencies, both are what the gateway adds to the model server's own time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Literal

from benchmarks.histories import History
from benchmarks.measure import CellResult
from benchmarks.paced import PacedResult
from benchmarks.run import Run
from benchmarks.targets import TargetName

LEFT_BYTES = 4096
"""Less than a page for each stream is how the kernel counts, and nothing that was left behind."""

PAIR: tuple[TargetName, TargetName] = ("fused", "agentic")
"""Whose figures are compared, but for what Envoy passes on by itself."""

Relation = Literal["at least", "at most", "under"]


@dataclass(frozen=True, slots=True)
class Aim:
    """What a ratio (Attaché's figure to agentic-api's), or the figure itself, must be."""

    relation: Relation
    limit: float
    of: Literal["ratio", "figure"] = "ratio"

    def reached_by(self, value: float) -> bool:
        """Whether `value` is what it must be."""
        match self.relation:
            case "at least":
                return value >= self.limit
            case "at most":
                return value <= self.limit
            case "under":
                return value < self.limit


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the summary; a figure that was not measured is None."""

    what: str
    unit: str
    ours: float | None
    theirs: float | None
    aim: Aim

    @property
    def ratio(self) -> float | None:
        """Attaché's figure to agentic-api's; None without both, and where theirs is nothing."""
        if self.ours is None or self.theirs is None or self.theirs <= 0:
            return None
        return self.ours / self.theirs

    @property
    def reached(self) -> bool | None:
        """Whether the aim is; None when that was not measured."""
        value = self.ratio if self.aim.of == "ratio" else self.ours
        return None if value is None else self.aim.reached_by(value)


def rows_of(run: Run) -> list[Row]:
    """All rows, in order."""
    return [*_load_rows(run), *_added_rows(run), *_stored_rows(run), *_paced_rows(run), *_memory_rows(run)]


def _load_rows(run: Run) -> Iterator[Row]:
    for connections in (16, 64):
        cells = _cells(run, "bypass", "json", store=False, connections=connections)
        what = f"JSON, `store: false`, {connections} connections, bypass"
        yield Row(what, "requests/s", *_figures(cells, "requests_per_s"), Aim("at least", 1.0))
    cells = _cells(run, "bypass", "sse", store=False, connections=16)
    what = "SSE at full speed, `store: false`, 16 connections, bypass"
    yield Row(what, "events/s", *_figures(cells, "events_per_s"), Aim("at least", 1.0))


def _added_rows(run: Run) -> Iterator[Row]:
    ours, theirs = (run.call(target, store=False) for target in PAIR)
    added = (ours.over_direct_ms if ours else None, theirs.over_direct_ms if theirs else None)
    yield Row("one warm MCP call, added latency", "ms", *added, Aim("at most", 1 / 3))
    for history, named in (
        (History("chain", 200, store=True), "turn after a chain of 200"),
        (History("conversation", 1000, store=True), "turn in a conversation of 1000 items"),
    ):
        turn, peer = (run.history(target, history) for target in PAIR)
        added = (turn.added_ms if turn else None, peer.added_ms if peer else None)
        yield Row(f"{named}, added latency", "ms", *added, Aim("at most", 1.0))


def _stored_rows(run: Run) -> Iterator[Row]:
    cells = _cells(run, "fused", "json", store=True, connections=16)
    what = "JSON, `store: true`, 16 connections"
    yield Row(what, "requests/s", *_figures(cells, "requests_per_s"), Aim("at least", 1.0))
    yield Row(f"{what}, p99", "ms", *_figures(cells, "p99_ms"), Aim("at most", 1.0))
    cells = _cells(run, "fused", "sse", store=True, connections=16)
    what = "SSE at full speed, `store: true`, 16 connections"
    yield Row(what, "events/s", *_figures(cells, "events_per_s"), Aim("at least", 1.0))
    yield Row(f"{what}, time to first event", "ms", *_figures(cells, "first_event_p50_ms"), Aim("at most", 1.0))


def _paced_rows(run: Run) -> Iterator[Row]:
    ours, theirs = (run.paced(target, 64) for target in PAIR)
    alone = run.paced("direct", 64)
    what = "64 stored streams at 50 events/s"
    added = (_added_p99_ms(ours, alone), _added_p99_ms(theirs, alone))
    yield Row(f"{what}, added delay of an event, p99", "ms", *added, Aim("under", 2.0, "figure"))
    cores = (ours.target_cores if ours else None, theirs.target_cores if theirs else None)
    yield Row(f"{what}, CPU of the whole gateway", "cores", *cores, Aim("under", 1.0, "figure"))


def _added_p99_ms(paced: PacedResult | None, alone: PacedResult | None) -> float | None:
    """Infinite where streams did not end: the delays of what never came are not among those that were measured."""
    if paced is None or alone is None:
        return None
    if not paced.errors and not (paced.kept_up and alone.kept_up):
        return None
    return inf if paced.errors else paced.delay_p99_ms - alone.delay_p99_ms


def _memory_rows(run: Run) -> Iterator[Row]:
    ours, theirs = (run.memory(target) for target in PAIR)
    in_flight = (ours.in_flight / 1024 if ours else None, theirs.in_flight / 1024 if theirs else None)
    yield Row("memory of a stream in flight", "KiB", *in_flight, Aim("under", 200.0, "figure"))
    left = (ours.left / 1024 if ours else None, theirs.left / 1024 if theirs else None)
    yield Row("memory that a stream leaves behind", "KiB", *left, Aim("under", LEFT_BYTES / 1024, "figure"))


Cells = tuple[CellResult | None, CellResult | None]


def _cells(run: Run, target: str, kind: str, *, store: bool, connections: int) -> Cells:
    ours = run.cell(target, kind, store=store, connections=connections)
    return ours, run.cell("agentic", kind, store=store, connections=connections)


def _figures(cells: Cells, name: str) -> tuple[float | None, float | None]:
    ours, theirs = (None if cell is None else float(getattr(cell, name)) for cell in cells)
    return ours, theirs
