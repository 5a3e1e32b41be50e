"""The ratios by which two runs can be compared, whatever machines they were made on, and what became of them. Pure.

A ratio is Attaché to agentic-api or to Envoy alone, turned so that more is better.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf

from benchmarks.aims import rows_of
from benchmarks.run import Run

WORSE = 0.85
"""A ratio that is less than this share of what it was is marked; noise of two runs is often half of that."""

_LOADS = (("json", False), ("json", True), ("sse", False), ("sse", True))


@dataclass(frozen=True, slots=True)
class Change:
    """One ratio, then and now; None where it was not measured."""

    what: str
    then: float | None
    now: float | None

    @property
    def share(self) -> float | None:
        """What it is of what it was."""
        return self.now / self.then if self.now is not None and self.then else None

    @property
    def worse(self) -> bool:
        """Whether it is worse by more than runs differ anyway."""
        return self.share is not None and self.share < WORSE


def ratios_of(run: Run) -> dict[str, float]:
    """Every ratio that the run has, by what it compares; more is better."""
    return dict(_ratios(run))


def changes(then: Mapping[str, float], now: Mapping[str, float]) -> list[Change]:
    """What became of each ratio of either run."""
    return [Change(what, then.get(what), now.get(what)) for what in {**now, **then}]


def _ratios(run: Run) -> Iterator[tuple[str, float]]:
    for row in rows_of(run):
        if row.ratio is not None and 0 < row.ratio < inf:
            more_is_better = row.aim.relation == "at least"
            yield f"{row.what} ({row.unit}), to agentic-api", row.ratio if more_is_better else 1 / row.ratio
    for kind, store in _LOADS:
        yield from _cpu_ratio(run, kind, store=store)
    for kind in ("json", "sse"):
        yield from _envoy_ratio(run, kind)


def _cpu_ratio(run: Run, kind: str, *, store: bool) -> Iterator[tuple[str, float]]:
    """By CPU, which other load on the machine disturbs less than it does rates."""
    ours, theirs = (run.cell(target, kind, store=store, connections=16) for target in ("fused", "agentic"))
    if ours and theirs and ours.target_cpu_ms > 0:
        named = f"{kind.upper()}{', stored' if store else ''}, 16 connections (CPU of a response), to agentic-api"
        yield named, theirs.target_cpu_ms / ours.target_cpu_ms


def _envoy_ratio(run: Run, kind: str) -> Iterator[tuple[str, float]]:
    alone = run.cell("envoy", kind, store=False, connections=16)
    for target in ("bypass", "fused", "split"):
        cell = run.cell(target, kind, store=False, connections=16)
        if cell and alone and alone.requests_per_s:
            yield (
                f"{kind.upper()}, 16 connections, {target} (requests/s), to Envoy alone",
                (cell.requests_per_s / alone.requests_per_s),
            )
