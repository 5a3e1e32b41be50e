"""A run on disk: the report, its summary, a picture, and everything as JSON, with which the next run is compared."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import orjson

from attache_core.json_codec import decode
from benchmarks.panels import panels_of
from benchmarks.ratios import changes, ratios_of
from benchmarks.report import markdown
from benchmarks.run import Run
from benchmarks.summary import summary_lines
from benchmarks.targets import PEERS

SUMMARY = "latest"
"""Of the run that is called this, the summary is written by itself as well."""


def write(run: Run, folder: Path, name: str) -> str:
    """Write a run as `name`, over the one before; returns the report."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / f"{name}.json"
    before = decode(kept.read_bytes()) if kept.exists() else {}
    then, now = before.get("ratios"), ratios_of(run)
    report = markdown(run, changes(then, now), before["when"]) if then else markdown(run)
    (folder / f"{name}.md").write_text(report)
    if name == SUMMARY:
        (folder / "summary.md").write_text("\n".join(summary_lines(run)) + "\n")
    told = {field.name: getattr(run, field.name) for field in fields(run)}
    options = orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS
    kept.write_bytes(orjson.dumps({**told, "ratios": now, "panels": panels_of(run)}, option=options) + b"\n")
    return report


def draw(folder: Path, name: str) -> None:
    """Draw what was written as `name`, where there is what draws it."""
    python, script = PEERS / "python", Path(__file__).parent / "plot.py"
    if python.exists():
        command = (python, script, folder / f"{name}.json", folder / f"{name}.png")
        subprocess.run(command, check=True, env={"MPLBACKEND": "agg"})
    else:
        sys.stderr.write(f"no plot: {python} is not there; `make bench` installs it\n")
