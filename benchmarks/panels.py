"""What the plot shows: a few panels of dots, each a figure of one target. Pure; `plot.py` draws them.

All scales are logarithmic, since ratios of ten and of a hundred stand beside each other; what is nothing or less has no
place on one and is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from benchmarks.histories import History
from benchmarks.names import NAMES
from benchmarks.run import Run

Figure = Callable[[str], float | None]
"""Of a target."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel.

    Attributes:
        axis: what the scale shows, with its unit.
        marked: a value at which a line stands; None for none.
        labels: one for each row.
        dots: by the name of a target its value in each row; None where it has none.
    """

    title: str
    axis: str
    marked: float | None
    labels: list[str]
    dots: dict[str, list[float | None]]


@dataclass(frozen=True, slots=True)
class _Load:
    kind: str
    store: bool
    connections: int


_LOADS = {
    "JSON, 16 connections": _Load("json", store=False, connections=16),
    "JSON, 64 connections": _Load("json", store=False, connections=64),
    "SSE, 16 connections": _Load("sse", store=False, connections=16),
    "JSON stored, 16 connections": _Load("json", store=True, connections=16),
    "SSE stored, 16 connections": _Load("sse", store=True, connections=16),
}
_HISTORIES = {
    "after a chain of 200": History("chain", 200, store=True),
    "after 1000 items": History("conversation", 1000, store=True),
}
_DELAYS = {"p50": "delay_p50_ms", "p99": "delay_p99_ms"}


def panels_of(run: Run) -> list[Panel]:
    """All panels that have at least one dot."""
    made = (_throughput(run), _cpu(run), _added(run), _delay(run))
    return [panel for panel in made if panel.dots]


def _throughput(run: Run) -> Panel:
    rows: dict[str, Figure] = {label: partial(_rate_ratio, run, load) for label, load in _LOADS.items()}
    targets = ("envoy", "bypass", "fused", "split")
    return _panel("Throughput", "requests/s, as a multiple of agentic-api's", 1.0, targets, rows)


def _cpu(run: Run) -> Panel:
    rows: dict[str, Figure] = {label: partial(_cpu_ms, run, load) for label, load in _LOADS.items()}
    targets = ("envoy", "bypass", "fused", "split", "agentic")
    return _panel("CPU of the gateway", "ms for each response, all processes", None, targets, rows)


def _added(run: Run) -> Panel:
    rows: dict[str, Figure] = {
        "JSON": partial(_added_ms, run, _Load("json", store=False, connections=1)),
        "JSON stored": partial(_added_ms, run, _Load("json", store=True, connections=1)),
        "one warm MCP call": partial(_call_ms, run),
        **{label: partial(_history_ms, run, history) for label, history in _HISTORIES.items()},
    }
    targets = ("envoy", "bypass", "fused", "split", "agentic")
    return _panel("Added latency, one request at a time", "ms over the model server alone", None, targets, rows)


def _delay(run: Run) -> Panel:
    counts = sorted({paced.streams for result in run.targets for paced in result.paced})
    rows: dict[str, Figure] = {
        f"{streams} streams, {percentile}": partial(_delay_ms, run, streams, name)
        for streams in counts
        for percentile, name in _DELAYS.items()
    }
    targets = ("direct", "envoy", "fused", "split", "agentic")
    axis = "ms from the model server to the client"
    return _panel("Delay of an event, streams of 50 events/s", axis, None, targets, rows)


def _panel(title: str, axis: str, marked: float | None, targets: Sequence[str], rows: Mapping[str, Figure]) -> Panel:
    columns = {NAMES[target]: [_positive(figure(target)) for figure in rows.values()] for target in targets}
    dots = {name: values for name, values in columns.items() if any(value is not None for value in values)}
    return Panel(title, axis, marked, list(rows), dots)


def _positive(value: float | None) -> float | None:
    return value if value is not None and value > 0 else None


def _rate_ratio(run: Run, load: _Load, target: str) -> float | None:
    cell, peer = (
        run.cell(name, load.kind, store=load.store, connections=load.connections) for name in (target, "agentic")
    )
    return cell.requests_per_s / peer.requests_per_s if cell and peer and peer.requests_per_s else None


def _cpu_ms(run: Run, load: _Load, target: str) -> float | None:
    cell = run.cell(target, load.kind, store=load.store, connections=load.connections)
    return cell.target_cpu_ms if cell else None


def _added_ms(run: Run, load: _Load, target: str) -> float | None:
    """A stored turn is compared with the model server's stateless one."""
    cell = run.cell(target, load.kind, store=load.store, connections=load.connections)
    alone = run.cell("direct", load.kind, store=False, connections=load.connections)
    return cell.p50_ms - alone.p50_ms if cell and alone else None


def _call_ms(run: Run, target: str) -> float | None:
    call = run.call(target, store=False)
    return call.over_direct_ms if call else None


def _history_ms(run: Run, history: History, target: str) -> float | None:
    turn = run.history(target, history)
    return turn.added_ms if turn else None


def _delay_ms(run: Run, streams: int, name: str, target: str) -> float | None:
    paced = run.paced(target, streams)
    return float(getattr(paced, name)) if paced and paced.kept_up and not paced.errors else None
