"""The summary as Markdown: each aim, whether it is reached; and what changed since another run. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite

from benchmarks.aims import Aim, Row, rows_of
from benchmarks.ratios import WORSE, Change
from benchmarks.run import Run

_SIGNS = {"at least": "≥", "at most": "≤", "under": "<"}
_REACHED = {True: "yes", False: "**no**", None: "-"}


def summary_lines(run: Run) -> Iterator[str]:
    """A table with one line for each row that has a figure."""
    yield "| | Attaché | agentic-api | ratio | aim | reached |"
    yield "| --- | ---: | ---: | ---: | ---: | --- |"
    for row in (row for row in rows_of(run) if (row.ours, row.theirs) != (None, None)):
        aim = _aim_text(row.aim, row.unit)
        ours, theirs = (_figure_text(figure, row.unit) for figure in (row.ours, row.theirs))
        yield f"| {row.what} | {ours} | {theirs} | {_ratio_text(row)} | {aim} | {_REACHED[row.reached]} |"


def change_lines(when: str, changes: Sequence[Change]) -> Iterator[str]:
    """A table of ratios, those that were made at `when` and today's; what is much worse is marked."""
    yield from ("", f"## Since {when}", "")
    yield "Ratios, turned so that more is better: figures of two runs cannot be compared, ratios within each can."
    yield f"Marked is what is less than {WORSE} of what it was."
    yield ""
    yield "| ratio | then | now | change |"
    yield "| --- | ---: | ---: | ---: |"
    for change in changes:
        percent = "-" if change.share is None else f"{100 * (change.share - 1):+.0f} %"
        marked = f"**{percent}, worse**" if change.worse else percent
        yield f"| {change.what} | {_number(change.then)} | {_number(change.now)} | {marked} |"


def _aim_text(aim: Aim, unit: str) -> str:
    sign = _SIGNS[aim.relation]
    return f"ratio {sign} {aim.limit:.2f}" if aim.of == "ratio" else f"{sign} {aim.limit:.1f} {unit}"


def _figure_text(figure: float | None, unit: str) -> str:
    if figure is None:
        return "-"
    if not isfinite(figure):
        return "failed"
    return f"{figure:,.0f} {unit}" if unit.endswith("/s") else f"{figure:.2f} {unit}"


def _ratio_text(row: Row) -> str:
    return "-" if row.ratio is None or not isfinite(row.ratio) else f"{_number(row.ratio)}"


def _number(value: float | None) -> str:
    """Two digits at least, whatever the size."""
    return "-" if value is None else f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"
