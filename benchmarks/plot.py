"""Draw the panels of a run: `python benchmarks/plot.py RESULT.json PICTURE.png`.

A script by itself: it runs where matplotlib is (`benchmarks/requirements.in`), which the rest of the project is not
installed beside, and knows of a run only its `panels`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullFormatter

COLUMNS = 2
ROW_INCHES = 3.2
STYLES = {
    "model server alone": ("#999999", "|"),
    "Envoy alone": ("#555555", "d"),
    "Attaché bypassed": ("#56b4e9", "o"),
    "Attaché fused": ("#0072b2", "o"),
    "Attaché split": ("#009e73", "s"),
    "agentic-api": ("#d55e00", "^"),
}
"""Colours that people who see few of them can tell apart (Okabe and Ito), and marks for those who print without."""


def draw(run: dict[str, Any], picture: Path) -> None:
    """Write the panels of a run as a PNG; nothing when it has none."""
    panels = run["panels"]
    if not panels:
        return
    rows = -(-len(panels) // COLUMNS)
    figure, grid = plt.subplots(rows, COLUMNS, figsize=(12, ROW_INCHES * rows), squeeze=False)
    places = list(grid.flat)
    for axes, panel in zip(places, panels, strict=False):
        _draw_panel(axes, panel)
    for axes in places[len(panels) :]:
        axes.axis("off")
    known = {name: handle for axes in places for handle, name in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(
        [known[name] for name in STYLES if name in known],
        [name for name in STYLES if name in known],
        loc="lower center",
        ncols=len(STYLES),
        frameon=False,
    )
    figure.text(0.01, 0.995, f"{run['when']}; {run['machine']}", fontsize=7, color="#555555", va="top")
    figure.tight_layout(rect=(0, 0.05, 1, 0.98))
    figure.savefig(picture, dpi=110)


def _draw_panel(axes: Axes, panel: dict[str, Any]) -> None:
    labels = panel["labels"]
    for name, values in panel["dots"].items():
        shown = [(value, place) for place, value in enumerate(values) if value is not None]
        colour, mark = STYLES[name]
        axes.plot(*zip(*shown, strict=True), linestyle="none", marker=mark, color=colour, markersize=7, label=name)
    axes.set_xscale("log")
    if panel["marked"] is not None:
        axes.axvline(panel["marked"], color="#d55e00", linewidth=1)
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.set_title(panel["title"], loc="left", fontsize=10)
    axes.set_xlabel(panel["axis"], fontsize=9)
    axes.tick_params(labelsize=8)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(axis="both", color="#e5e5e5", linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


if __name__ == "__main__":
    draw(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]))
