"""What a run leaves on disk, and what the next one says about it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.histories import HistoriesResult, History, HistoryResult
from benchmarks.record import write
from benchmarks.run import Run

from attache_core.json_codec import decode

TURN = HistoryResult("fused", History("chain", 200, store=True), 9.0, 1.5, 8.0, 7.0, 0)
RATIO = "turn after a chain of 200, added latency (ms), to agentic-api"


def run_of(when: str, fused_ms: float) -> Run:
    turns = [replace(TURN, added_ms=fused_ms), replace(TURN, target="agentic", added_ms=4.0)]
    histories = HistoriesResult(repetitions=30, chain_turns=200, turns=turns, stored=[])
    return Run(when, "a machine", {}, {}, {}, [], None, histories)


def test_run_is_compared_with_the_one_that_was_written_before(tmp_path: Path) -> None:
    first = write(run_of("2026-01-01", fused_ms=8.0), tmp_path, "latest")
    second = write(run_of("2026-01-02", fused_ms=10.0), tmp_path, "latest")
    kept = decode((tmp_path / "latest.json").read_bytes())
    assert "## Since" not in first
    assert "## Since 2026-01-01" in second
    assert f"| {RATIO} | 0.50 | 0.40 | **-20 %, worse** |" in second.splitlines()
    assert (kept["when"], kept["ratios"], (tmp_path / "latest.md").read_text()) == ("2026-01-02", {RATIO: 0.4}, second)


def test_run_after_one_without_ratios_is_compared_with_nothing(tmp_path: Path) -> None:
    (tmp_path / "latest.json").write_text('{"when": "2025-01-01", "targets": []}')
    assert "## Since" not in write(run_of("2026-01-01", fused_ms=8.0), tmp_path, "latest")


def test_summary_is_written_by_itself_of_the_latest_run_alone(tmp_path: Path) -> None:
    for name in ("quick", "latest"):
        report = write(run_of("2026-01-01", fused_ms=8.0), tmp_path, name)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("latest.json", "latest.md", "quick.json", "quick.md", "summary.md"),
    ]
    assert (tmp_path / "summary.md").read_text() in report
