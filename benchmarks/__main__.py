"""`python -m benchmarks`: measure everything in one run, print the report, write it to `benchmarks/results/`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter

import uvloop

from benchmarks.histories import HistoriesResult, measure_histories
from benchmarks.machine import machine_line, versions
from benchmarks.measure import TargetResult, measure_generator, measure_target
from benchmarks.plan import FULL, QUICK, Plan
from benchmarks.record import draw, write
from benchmarks.run import Run
from benchmarks.targets import (
    GATEWAYS,
    TARGETS,
    Sizes,
    Target,
    TargetName,
    TargetStartError,
    running_envoy,
    running_mcp_server,
    running_model,
    running_target,
)
from benchmarks.tool_calls import CallsResult, measure_calls

RESULTS = Path(__file__).parent / "results"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmarks; exits 1 when a response was wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few minutes, only one round, shorter cells")
    parser.add_argument("--targets", nargs="+", choices=TARGETS, default=list(TARGETS))
    only = parser.add_mutually_exclusive_group()
    for part, costs in (("calls", "turns with an MCP call"), ("histories", "turns after histories")):
        only.add_argument(f"--only-{part}", dest="only", action="store_const", const=part, help=f"only {costs}")
    parser.add_argument("--rounds", type=int, help="how often every target is started and measured")
    parser.add_argument(
        "--workers", type=int, help="worker processes of Attaché; otherwise as many as it takes by itself"
    )
    parser.add_argument("--envoy-threads", type=int, help="worker threads of every Envoy; otherwise one for each core")
    parser.add_argument(
        "--out", type=Path, default=RESULTS, help="where latest (or quick, calls, histories) .json, .md and .png go"
    )
    options = parser.parse_args(arguments)
    plan = QUICK if options.quick else FULL
    plan = replace(plan, rounds=options.rounds or plan.rounds)
    plan = replace(plan, only=options.only)
    run = uvloop.run(_measure(plan, Sizes(options.envoy_threads, options.workers), options.targets))
    name = plan.only or ("quick" if options.quick else "latest")
    sys.stdout.write(write(run, options.out, name))
    draw(options.out, name)
    sys.exit(1 if run.errors else 0)


async def _measure(plan: Plan, sizes: Sizes, names: Sequence[TargetName]) -> Run:
    machine = machine_line()
    generator: dict[int, float] = {}
    results: list[TargetResult] = []
    left_out: dict[str, str] = {}
    calls: CallsResult | None = None
    histories: HistoriesResult | None = None
    async with AsyncExitStack() as stack:
        model = await stack.enter_async_context(running_model())
        mcp_url = None
        if set(GATEWAYS) & set(names):
            mcp_url = await stack.enter_async_context(running_mcp_server())
            if plan.only != "histories":
                calls = await _measure_calls(model, mcp_url, plan, sizes, names)
            if plan.only != "calls":
                histories = await _measure_histories(model, plan, sizes, names)
        if plan.only is None:
            generator = await _measure_generator(model, sizes, plan)
            results, left_out = await _measure_targets(model, mcp_url, plan, sizes, names)
    settings = {"rounds": plan.rounds, "seconds for each cell": plan.duration_s, **_told(sizes)}
    when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return Run(when, machine, versions(), settings, generator, results, calls, histories, left_out)


def _told(sizes: Sizes) -> dict[str, object]:
    return {name: "by default" if value is None else value for name, value in asdict(sizes).items()}


async def _measure_calls(
    model: Target, mcp_url: str, plan: Plan, sizes: Sizes, names: Sequence[TargetName]
) -> CallsResult:
    sys.stderr.write("turns with an MCP call\n")
    async with _running_gateways(model, sizes, names) as gateways:
        return await measure_calls(model, gateways, mcp_url, plan.call_repetitions)


async def _measure_histories(model: Target, plan: Plan, sizes: Sizes, names: Sequence[TargetName]) -> HistoriesResult:
    sys.stderr.write("turns after histories\n")
    async with _running_gateways(model, sizes, names) as gateways:
        return await measure_histories(model, gateways, plan)


@asynccontextmanager
async def _running_gateways(model: Target, sizes: Sizes, names: Sequence[TargetName]) -> AsyncIterator[list[Target]]:
    """All gateways run at once, so that they can be asked in turn; those that are not asked do nothing."""
    async with AsyncExitStack() as stack:
        gateways: list[Target] = []
        for name in (name for name in GATEWAYS if name in names):
            try:
                gateways.append(await stack.enter_async_context(running_target(name, model, sizes)))
            except TargetStartError as error:
                sys.stderr.write(f"{name} is left out: {error}\n")
        yield gateways


async def _measure_targets(
    model: Target, mcp_url: str | None, plan: Plan, sizes: Sizes, names: Sequence[TargetName]
) -> tuple[list[TargetResult], dict[str, str]]:
    """Every target in turn, round by round; and those that did not start, with what they said."""
    results: list[TargetResult] = []
    left_out: dict[str, str] = {}
    for number in range(plan.rounds):
        for name in (name for name in names if name not in left_out):
            sys.stderr.write(f"round {number + 1} of {plan.rounds}: {name}\n")
            started_at = perf_counter()
            try:
                async with running_target(name, model, sizes) as target:
                    results.append(await measure_target(target, model, plan, mcp_url, started_at))
            except TargetStartError as error:
                left_out[name] = str(error)
    return results, left_out


async def _measure_generator(model: Target, sizes: Sizes, plan: Plan) -> dict[int, float]:
    with tempfile.TemporaryDirectory(prefix="attache-bench-") as folder:
        async with running_envoy(model.url, Path(folder), sizes) as (_, _, answered):
            return await measure_generator(answered, plan)


if __name__ == "__main__":
    main()
