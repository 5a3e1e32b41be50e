"""`python -m benchmarks`: measure everything in one run, print the table, write it to `benchmarks/results/`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

import orjson
import uvloop

from benchmarks.histories import HistoriesResult, measure_histories
from benchmarks.machine import machine_line, versions
from benchmarks.measure import TargetResult, measure_generator, measure_target
from benchmarks.plan import FULL, QUICK, Plan
from benchmarks.report import Run, markdown
from benchmarks.targets import (
    GATEWAYS,
    TARGETS,
    Sizes,
    Target,
    TargetName,
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
    parser.add_argument("--quick", action="store_true", help="a minute or two, and only one round")
    parser.add_argument("--targets", nargs="+", choices=TARGETS, default=list(TARGETS))
    only = parser.add_mutually_exclusive_group()
    for part, costs in (("calls", "turns with an MCP call"), ("histories", "turns after histories")):
        only.add_argument(f"--only-{part}", dest="only", action="store_const", const=part, help=f"only {costs}")
    parser.add_argument("--rounds", type=int, help="how often every target is started and measured")
    parser.add_argument("--workers", type=int, default=1, help="worker processes of Attaché")
    parser.add_argument("--envoy-threads", type=int, default=1, help="worker threads of every Envoy")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where latest.json and latest.md go")
    options = parser.parse_args(arguments)
    plan = QUICK if options.quick else FULL
    plan = replace(plan, rounds=options.rounds or plan.rounds)
    plan = replace(plan, only=options.only)
    run = uvloop.run(_measure(plan, Sizes(options.envoy_threads, options.workers), options.targets))
    _write(run, options.out)
    sys.exit(1 if _errors(run) else 0)


async def _measure(plan: Plan, sizes: Sizes, names: Sequence[TargetName]) -> Run:
    machine = machine_line()
    generator: dict[int, float] = {}
    results: list[TargetResult] = []
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
            results = await _measure_targets(model, mcp_url, plan, sizes, names)
    settings = {"rounds": plan.rounds, "seconds for each cell": plan.duration_s, **asdict(sizes)}
    when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return Run(when, machine, versions(), settings, generator, results, calls, histories)


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
        yield [
            await stack.enter_async_context(running_target(name, model, sizes)) for name in GATEWAYS if name in names
        ]


async def _measure_targets(
    model: Target, mcp_url: str | None, plan: Plan, sizes: Sizes, names: Sequence[TargetName]
) -> list[TargetResult]:
    results: list[TargetResult] = []
    for number in range(plan.rounds):
        for name in names:
            sys.stderr.write(f"round {number + 1} of {plan.rounds}: {name}\n")
            async with running_target(name, model, sizes) as target:
                results.append(await measure_target(target, model, plan, mcp_url))
    return results


async def _measure_generator(model: Target, sizes: Sizes, plan: Plan) -> dict[int, float]:
    with tempfile.TemporaryDirectory(prefix="attache-bench-") as folder:
        async with running_envoy(model.url, Path(folder), sizes) as (_, _, answered):
            return await measure_generator(answered, plan)


def _write(run: Run, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    table = markdown(run)
    (folder / "latest.md").write_text(table)
    options = orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS
    (folder / "latest.json").write_bytes(orjson.dumps(run, option=options) + b"\n")
    sys.stdout.write(table)


def _errors(run: Run) -> int:
    calls = sum(result.errors for result in run.calls.gateways) if run.calls else 0
    histories = sum(result.errors for result in run.histories.turns) if run.histories else 0
    loads = sum(
        sum(cell.errors for cell in result.cells)
        + (result.chain.errors if result.chain else 0)
        + (result.tool.errors if result.tool else 0)
        for result in run.targets
    )
    return calls + histories + loads


if __name__ == "__main__":
    main()
