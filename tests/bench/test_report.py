"""The report: medians over rounds, ratios to the model server, errors where they cannot be missed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from benchmarks.histories import HistoriesResult, History, HistoryResult, StoredResult
from benchmarks.measure import CellResult, TargetResult
from benchmarks.memory import MemoryResult
from benchmarks.paced import PacedResult
from benchmarks.processes import Memory
from benchmarks.report import markdown
from benchmarks.run import Run, cells_by_target, median_cell
from benchmarks.tool_calls import CallResult, CallsResult, PartsResult

from bench.measured import CELL, PACED

MIB = 1024 * 1024

GATEWAY_CELL = replace(CELL, requests_per_s=250.0, p50_ms=3.5, target_cpu_ms=2.0)


IDLE = Memory(pss=100 * MIB, uss=80 * MIB, anonymous=70 * MIB, processes=3)
MEMORY = MemoryResult(IDLE, streams=64, in_flight=50 * 1024.0, left=512.0, failures={})


def result(
    target: str,
    *cells: CellResult,
    paced: Sequence[PacedResult] = (),
    memory: MemoryResult | None = None,
    first_call_ms: float | None = None,
) -> TargetResult:
    after = Memory(pss=110 * MIB, uss=85 * MIB, anonymous=75 * MIB, processes=3)
    start_s = None if target == "direct" else 1.5
    return TargetResult(target, start_s, first_call_ms, memory, list(cells), list(paced), after)


def run_of(*targets: TargetResult) -> Run:
    return Run("2026-01-01", "a machine", {"Envoy": "1.40.0"}, {"rounds": 1}, {16: 50000.0}, list(targets))


def row(report: str, name: str, start: str) -> str:
    """The one row of a target in the table whose rows begin with `start`."""
    (found,) = [line for line in report.splitlines() if line.startswith(start) and name in line]
    return found


def test_median_cell_takes_the_middle_of_each_number_and_all_errors() -> None:
    measured = [replace(CELL, p50_ms=latency, failures={"503": 1}) for latency in (9.0, 1.0, 2.0)]
    assert median_cell(measured) == replace(CELL, p50_ms=2.0, failures={"503": 3})


def test_cells_of_several_rounds_become_one_for_each_target() -> None:
    rounds = [result("envoy", replace(CELL, p99_ms=value)) for value in (3.0, 5.0)]
    assert cells_by_target(rounds) == {"envoy": {("json", False, 16): replace(CELL, p99_ms=4.0)}}


def test_row_shows_ratio_and_added_latency_against_the_model_server() -> None:
    report = markdown(run_of(result("direct", CELL), result("fused", GATEWAY_CELL)))
    assert row(report, "Attaché fused", "| 16 |") == (
        "| 16 | Attaché fused | 250 | 0.250 | - | 3.50 | +2.50 | 4.00 | - | 2.00 (0.25, 0.50) |"
    )
    assert row(report, "model server alone", "| 16 |").split(" | ")[3:7] == ["1.000", "-", "1.00", "-"]


def test_row_with_failures_says_which() -> None:
    failing = replace(CELL, failures={"503": 2, "lost": 1})
    report = markdown(run_of(result("direct", CELL), result("envoy", failing)))
    assert "| 16 | Envoy alone **failed: 2 503, 1 lost** | 1,000 |" in report


def test_stored_table_compares_with_the_stateless_model_server() -> None:
    stored = replace(GATEWAY_CELL, store=True)
    report = markdown(run_of(result("direct", CELL), result("split", stored)))
    table = report.partition("### JSON, stored")[2].partition("##")[0]
    assert [line.split(" | ")[1] for line in table.splitlines() if line.startswith("| 16 |")] == [
        "model server alone",
        "Attaché split",
    ]


def test_start_and_memory_are_medians_over_the_rounds() -> None:
    rounds = [
        result("split", memory=replace(MEMORY, left=left, failures=failures), first_call_ms=first_ms)
        for left, failures, first_ms in ((512.0, {}, 40.0), (-1024.0, {"lost": 1}, 30.0), (1024.0, {}, 90.0))
    ]
    assert row(markdown(run_of(*rounds)), "Attaché split", "| Attaché split") == (
        "| Attaché split **failed: 1 lost** | 1.50 | 40.0 | 3 | 100 (80) | 50.0 | 0.5 | 110 (85) |"
    )


def test_paced_streams_are_compared_with_those_of_the_model_server() -> None:
    late = replace(PACED, delay_p50_ms=0.75, delay_p99_ms=3.5, failures={"late": 2})
    slow = replace(PACED, events_per_s=2800.0)
    targets = result("direct", paced=[PACED]), result("fused", paced=[late]), result("split", paced=[slow])
    report = markdown(run_of(*targets))
    table = report.partition("## Streams at a model's speed")[2]
    assert [line for line in table.splitlines() if line.startswith("| 64 |")] == [
        "| 64 | model server alone | 3,200 | 0.50 | - | 2.00 | - | 0.25 | 0.12 | 0.06 |",
        "| 64 | Attaché fused **failed: 2 late** | 3,200 | 0.75 | +0.25 | 3.50 | +1.50 | 0.25 | 0.12 | 0.06 |",
        "| 64 | Attaché split **model server held up** | 2,800 | 0.50 | +0.00 | 2.00 | +0.00 | 0.25 | 0.12 | 0.06 |",
    ]


def test_report_says_how_far_model_server_and_load_generator_are_from_holding_up_the_fastest_gateway() -> None:
    stream, streamed = replace(CELL, kind="sse"), replace(CELL, kind="sse", requests_per_s=125.0)
    report = markdown(run_of(result("direct", CELL, stream), result("fused", GATEWAY_CELL), result("bypass", streamed)))
    said = (
        "The load generator alone, against Envoy's own answer: 50,000/s at 16. "
        "The model server alone: 4.0 times the fastest gateway (JSON, 16 connections), or more."
    )
    assert said in " ".join(report.split())


def test_target_that_did_not_start_is_named_with_its_reason() -> None:
    run = replace(run_of(), left_out={"bypass": "routes[0].bypass: unknown key"})
    assert "**Left out, Attaché bypassed did not start:** routes[0].bypass: unknown key" in markdown(run)


def test_turns_with_a_call_are_shown_with_their_parts_and_errors() -> None:
    stored = CallResult(
        target="agentic",
        store=True,
        turn_ms=9.0,
        one_round_ms=1.5,
        over_sdk_ms=4.0,
        over_direct_ms=6.0,
        over_direct_best_ms=5.5,
        over_rounds_ms=-0.25,
        cpu_ms=2.0,
        errors=1,
    )
    calls = CallsResult(20, PartsResult(0.5, 0.25, 4.25, 2.25), [stored])
    report = markdown(replace(run_of(), calls=calls))
    assert row(report, "agentic-api", "| agentic-api") == (
        "| agentic-api, stored **1 errors** | 9.00 | 1.50 | +6.00 | +5.50 | +4.00 | -0.25 | 2.0 |"
    )
    assert "the rounds take 0.50 and 0.25 ms, the call on an open session 2.25 ms" in " ".join(report.split())


def test_turns_after_histories_are_shown_with_what_they_store() -> None:
    turn = HistoryResult("fused", History("chain", 50, store=True), 9.0, 1.5, 7.25, 7.0, 0)
    histories = HistoriesResult(
        repetitions=30,
        chain_turns=200,
        turns=[
            turn,
            replace(turn, history=History("chain", 1, store=False)),
            replace(turn, target="agentic", history=History("conversation", 1000, store=True), errors=2),
        ],
        stored=[StoredResult("fused", 2000.0, 2100.0)],
    )
    report = markdown(replace(run_of(), histories=histories))
    table = report.partition("## A turn after a history")[2]
    assert [line for line in table.splitlines() if line.startswith("| ") and "---" not in line] == [
        "| after | | turn ms | alone ms | added | at best |",
        "| 50 turns, stored | Attaché fused | 9.00 | 1.50 | +7.25 | +7.00 |",
        "| 1 turn | Attaché fused | 9.00 | 1.50 | +7.25 | +7.00 |",
        "| 1000 items of a conversation | agentic-api **2 errors** | 9.00 | 1.50 | +7.25 | +7.00 |",
        "| | bytes of a first turn | of a last turn | ratio |",
        "| Attaché fused | 2,000 | 2,100 | 1.05 |",
    ]
    assert "of its first 10 turns and of its last" in " ".join(table.split())
