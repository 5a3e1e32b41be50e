"""The summary: which figures its rows compare, when an aim counts as reached, and what became of ratios since."""

from __future__ import annotations

from dataclasses import replace

import pytest
from benchmarks.aims import Aim, Row, rows_of
from benchmarks.histories import HistoriesResult, History, HistoryResult
from benchmarks.measure import CellResult, TargetResult
from benchmarks.memory import MemoryResult
from benchmarks.paced import PacedResult
from benchmarks.panels import Panel, panels_of
from benchmarks.processes import Memory
from benchmarks.ratios import Change, changes, ratios_of
from benchmarks.run import Run
from benchmarks.summary import change_lines, summary_lines
from benchmarks.tool_calls import CallResult, CallsResult, PartsResult

from bench import measured

CELL = replace(measured.CELL, target_cpu_ms=0.5)
STREAMED = replace(CELL, kind="sse", requests_per_s=10.0, events_per_s=2000.0, first_event_p50_ms=3.0)
PACED = replace(measured.PACED, delay_p99_ms=1.0)
IDLE = Memory(pss=0, uss=0, anonymous=0, processes=1)
MEMORY = MemoryResult(IDLE, streams=64, in_flight=100 * 1024.0, left=1024.0, failures={})
CALL = CallResult(
    target="fused",
    store=False,
    turn_ms=9.0,
    one_round_ms=1.5,
    over_sdk_ms=4.0,
    over_direct_ms=5.0,
    over_direct_best_ms=4.0,
    over_rounds_ms=0.0,
    cpu_ms=2.0,
    errors=0,
)
TURN = HistoryResult("fused", History("chain", 200, store=True), 9.0, 1.5, 8.0, 7.0, 0)


def result(target: str, *cells: CellResult, paced: PacedResult = PACED) -> TargetResult:
    return TargetResult(target, 1.0, None, MEMORY, list(cells), [paced], IDLE)


def whole_run() -> Run:
    """Everything that the summary compares, each figure of its own."""
    fused = (
        replace(CELL, requests_per_s=250.0),
        replace(CELL, store=True, requests_per_s=200.0, p99_ms=8.0),
        replace(STREAMED, store=True, events_per_s=1500.0, first_event_p50_ms=2.0),
    )
    bypass = (replace(CELL, requests_per_s=1500.0), replace(CELL, connections=64), STREAMED)
    stored = (replace(CELL, store=True, requests_per_s=400.0), replace(STREAMED, store=True, events_per_s=1000.0))
    agentic = (CELL, replace(CELL, connections=64), replace(STREAMED, events_per_s=4000.0), *stored)
    targets = [
        result("direct", CELL),
        result("envoy", replace(CELL, requests_per_s=2000.0)),
        result("bypass", *bypass),
        result("fused", *fused, paced=replace(PACED, delay_p99_ms=2.5)),
        result("agentic", *agentic, paced=replace(PACED, delay_p99_ms=1.5)),
    ]
    calls = [CALL, replace(CALL, target="agentic", over_direct_ms=20.0)]
    turns = [TURN, replace(TURN, target="agentic", added_ms=4.0)]
    return Run(
        when="2026-01-01",
        machine="a machine",
        versions={},
        settings={},
        generator={},
        targets=targets,
        calls=CallsResult(20, PartsResult(0.5, 0.25, 4.25, 2.25), calls),
        histories=HistoriesResult(repetitions=30, chain_turns=200, turns=turns, stored=[]),
    )


def test_summary_has_every_measured_row_with_both_figures_and_whether_it_is_reached() -> None:
    head, _, *lines = summary_lines(whole_run())
    assert head == "| | Attaché | agentic-api | ratio | aim | reached |"
    assert [tuple(line.strip("| ").split(" | ")) for line in lines] == [
        (
            "JSON, `store: false`, 16 connections, bypass",
            "1,500 requests/s",
            "1,000 requests/s",
            "1.50",
            "ratio ≥ 1.00",
            "yes",
        ),
        (
            "JSON, `store: false`, 64 connections, bypass",
            "1,000 requests/s",
            "1,000 requests/s",
            "1.00",
            "ratio ≥ 1.00",
            "yes",
        ),
        (
            "SSE at full speed, `store: false`, 16 connections, bypass",
            "2,000 events/s",
            "4,000 events/s",
            "0.50",
            "ratio ≥ 1.00",
            "**no**",
        ),
        ("one warm MCP call, added latency", "5.00 ms", "20.00 ms", "0.25", "ratio ≤ 0.33", "yes"),
        ("turn after a chain of 200, added latency", "8.00 ms", "4.00 ms", "2.00", "ratio ≤ 1.00", "**no**"),
        ("JSON, `store: true`, 16 connections", "200 requests/s", "400 requests/s", "0.50", "ratio ≥ 1.00", "**no**"),
        ("JSON, `store: true`, 16 connections, p99", "8.00 ms", "4.00 ms", "2.00", "ratio ≤ 1.00", "**no**"),
        (
            "SSE at full speed, `store: true`, 16 connections",
            "1,500 events/s",
            "1,000 events/s",
            "1.50",
            "ratio ≥ 1.00",
            "yes",
        ),
        (
            "SSE at full speed, `store: true`, 16 connections, time to first event",
            "2.00 ms",
            "3.00 ms",
            "0.67",
            "ratio ≤ 1.00",
            "yes",
        ),
        (
            "64 stored streams at 50 events/s, added delay of an event, p99",
            "1.50 ms",
            "0.50 ms",
            "3.00",
            "< 2.0 ms",
            "yes",
        ),
        (
            "64 stored streams at 50 events/s, CPU of the whole gateway",
            "0.25 cores",
            "0.25 cores",
            "1.00",
            "< 1.0 cores",
            "yes",
        ),
        ("memory of a stream in flight", "100.00 KiB", "100.00 KiB", "1.00", "< 200.0 KiB", "yes"),
        ("memory that a stream leaves behind", "1.00 KiB", "1.00 KiB", "1.00", "< 4.0 KiB", "yes"),
    ]


@pytest.mark.parametrize(
    ("aim", "ours", "theirs", "reached"),
    [
        (Aim("at least", 1.0), 2.0, 2.0, True),
        (Aim("at least", 1.0), 1.9, 2.0, False),
        (Aim("at most", 0.5), 1.0, 2.0, True),
        (Aim("at most", 0.5), 1.1, 2.0, False),
        (Aim("at most", 0.5), 1.0, None, None),
        (Aim("at most", 0.5), None, 1.0, None),
        (Aim("at most", 0.5), 1.0, 0.0, None),
        (Aim("under", 2.0, "figure"), 2.0, None, False),
        (Aim("under", 2.0, "figure"), -0.1, None, True),
        (Aim("under", 2.0, "figure"), None, 1.0, None),
    ],
)
def test_aim_is_of_the_ratio_or_of_the_figure(
    aim: Aim, ours: float | None, theirs: float | None, reached: bool | None
) -> None:
    assert Row("a row", "ms", ours, theirs, aim).reached is reached


def test_delay_is_not_known_where_the_model_server_was_held_up() -> None:
    run = whole_run()
    slow = [
        replace(target, paced=[replace(PACED, events_per_s=2800.0)]) if target.target == "direct" else target
        for target in run.targets
    ]
    (row,) = [row for row in rows_of(replace(run, targets=slow)) if "added delay" in row.what]
    assert (row.ours, row.theirs, row.reached) == (None, None, None)


def test_delay_of_streams_that_did_not_all_end_reaches_nothing() -> None:
    run = whole_run()
    late = [
        replace(target, paced=[replace(PACED, failures={"late": 1})]) if target.target == "fused" else target
        for target in run.targets
    ]
    (row,) = [row for row in rows_of(replace(run, targets=late)) if "added delay" in row.what]
    (line,) = [line for line in summary_lines(replace(run, targets=late)) if "added delay" in line]
    assert (row.reached, line.split(" | ")[1:4]) == (False, ["failed", "0.50 ms", "-"])


def test_ratios_are_turned_so_that_more_is_better() -> None:
    ratios = ratios_of(whole_run())
    assert {what: ratio for what, ratio in ratios.items() if what.startswith(("JSON", "one warm", "turn"))} == {
        "JSON, `store: false`, 16 connections, bypass (requests/s), to agentic-api": 1.5,
        "JSON, `store: false`, 64 connections, bypass (requests/s), to agentic-api": 1.0,
        "one warm MCP call, added latency (ms), to agentic-api": 4.0,
        "turn after a chain of 200, added latency (ms), to agentic-api": 0.5,
        "JSON, `store: true`, 16 connections (requests/s), to agentic-api": 0.5,
        "JSON, `store: true`, 16 connections, p99 (ms), to agentic-api": 0.5,
        "JSON, 16 connections (CPU of a response), to agentic-api": 1.0,
        "JSON, stored, 16 connections (CPU of a response), to agentic-api": 1.0,
        "JSON, 16 connections, bypass (requests/s), to Envoy alone": 0.75,
        "JSON, 16 connections, fused (requests/s), to Envoy alone": 0.125,
    }


def test_changes_mark_what_is_more_than_fifteen_percent_worse() -> None:
    then = {"a": 1.0, "b": 1.0, "c": 1.0, "gone": 2.0}
    changed = changes(then, {"a": 0.84, "b": 0.86, "c": 1.5, "new": 0.01})
    assert [(change, change.worse) for change in changed] == [
        (Change("a", 1.0, 0.84), True),
        (Change("b", 1.0, 0.86), False),
        (Change("c", 1.0, 1.5), False),
        (Change("new", None, 0.01), False),
        (Change("gone", 2.0, None), False),
    ]
    assert list(change_lines("yesterday", changed))[-5:] == [
        "| a | 1.00 | 0.84 | **-16 %, worse** |",
        "| b | 1.00 | 0.86 | -14 % |",
        "| c | 1.00 | 1.50 | +50 % |",
        "| new | - | 0.01 | - |",
        "| gone | 2.00 | - | - |",
    ]


def test_panels_hold_what_was_measured_and_no_dot_that_a_logarithmic_scale_has_no_place_for() -> None:
    panels = panels_of(whole_run())
    assert panels[0] == Panel(
        title="Throughput",
        axis="requests/s, as a multiple of agentic-api's",
        marked=1.0,
        labels=[
            "JSON, 16 connections",
            "JSON, 64 connections",
            "SSE, 16 connections",
            "JSON stored, 16 connections",
            "SSE stored, 16 connections",
        ],
        dots={
            "Envoy alone": [2.0, None, None, None, None],
            "Attaché bypassed": [1.5, 1.0, 1.0, None, None],
            "Attaché fused": [0.25, None, None, 0.5, 1.0],
        },
    )
    assert panels[2].dots == {
        "Attaché fused": [None, None, 5.0, 8.0, None],
        "agentic-api": [None, None, 20.0, 4.0, None],
    }
    assert panels_of(replace(whole_run(), targets=[], calls=None, histories=None)) == []
