"""Measure one started target: every cell of the plan, then a chain of turns, then turns with an MCP call."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from statistics import median

from attache_core.json_codec import Json
from benchmarks.load import Load, Measured, percentile, run_load
from benchmarks.plan import JSON_MODEL, QUESTION, Cell, Plan, cells_of
from benchmarks.processes import usage_of
from benchmarks.targets import Target
from benchmarks.turns import Turns

WARMUP_CONNECTIONS = 4
"""More would only queue up, and be waited for."""

EDGE_TURNS = 10
"""The first and the last so many turns of a chain are compared, by their medians."""


@dataclass(frozen=True, slots=True)
class CellResult:
    """One cell, measured once. CPU is in milliseconds for each good response; latency in milliseconds."""

    kind: str
    store: bool
    connections: int
    requests_per_s: float
    events_per_s: float
    p50_ms: float
    p99_ms: float
    first_event_p50_ms: float
    target_cpu_ms: float
    model_cpu_ms: float
    generator_cpu_ms: float
    responses: int
    failures: dict[str, int]

    @property
    def errors(self) -> int:
        """How many responses were bad."""
        return sum(self.failures.values())


@dataclass(frozen=True, slots=True)
class ChainResult:
    """A chain of stored turns, each continuing the one before: medians of its first and its last turns."""

    turns: int
    first_ms: float
    last_ms: float
    errors: int


@dataclass(frozen=True, slots=True)
class ToolResult:
    """Turns that call one MCP tool: two rounds of inference and the call. The first one finds the tools as well."""

    cold_ms: float
    warm_p50_ms: float
    errors: int


@dataclass(frozen=True, slots=True)
class TargetResult:
    """One target, started once."""

    target: str
    rss_before_mib: float
    rss_after_mib: float
    processes: int
    cells: list[CellResult]
    chain: ChainResult | None
    tool: ToolResult | None


async def measure_target(target: Target, model: Target, plan: Plan, mcp_url: str | None) -> TargetResult:
    """Measure everything of one target. `mcp_url` None leaves out the MCP call."""
    await _one_response(target)
    tool = await _measure_tool(target, plan, mcp_url) if target.keeps_state and mcp_url else None
    before = usage_of(target.pid)
    cells = [await _measure_cell(cell, target, model, plan) for cell in cells_of(plan, target)]
    chain = await _measure_chain(target, plan) if target.keeps_state else None
    after = usage_of(target.pid)
    mib = 1024 * 1024
    return TargetResult(target.name, before.rss_bytes / mib, after.rss_bytes / mib, after.processes, cells, chain, tool)


async def measure_generator(url: str, plan: Plan) -> dict[int, float]:
    """Requests a second of the load generator alone, against a server that costs almost nothing, by connections."""
    rates: dict[int, float] = {}
    for connections in plan.connections:
        # Without a body: Envoy answers before it has read one, and would close the connection for that.
        measured = await run_load(Load(url, b"", connections, plan.duration_s))
        if measured.errors:
            raise RuntimeError(f"the load generator alone failed: {measured.failures}")
        rates[connections] = measured.requests_per_s
    return rates


async def _measure_cell(cell: Cell, target: Target, model: Target, plan: Plan) -> CellResult:
    load = Load(target.url, cell.body, cell.connections, plan.duration_s, cell.min_events)
    if cell.kind != "paced":
        await run_load(replace(load, duration_s=plan.warmup_s, connections=min(cell.connections, WARMUP_CONNECTIONS)))
    before = _cpu_s(target, model)
    measured = await run_load(load)
    spent = [after - was for after, was in zip(_cpu_s(target, model), before, strict=True)]
    return _cell_result(cell, measured, spent)


def _cell_result(cell: Cell, measured: Measured, spent_s: list[float]) -> CellResult:
    good = len(measured.latencies_s)
    target_ms, model_ms, generator_ms = (1000 * seconds / good if good else float("nan") for seconds in spent_s)
    return CellResult(
        kind=cell.kind,
        store=cell.store,
        connections=cell.connections,
        requests_per_s=measured.requests_per_s,
        events_per_s=measured.events_per_s,
        p50_ms=1000 * percentile(measured.latencies_s, 50),
        p99_ms=1000 * percentile(measured.latencies_s, 99),
        first_event_p50_ms=1000 * percentile(measured.first_events_s, 50),
        target_cpu_ms=target_ms,
        model_cpu_ms=model_ms,
        generator_cpu_ms=generator_ms,
        responses=good,
        failures=measured.failures,
    )


def _cpu_s(target: Target, model: Target) -> tuple[float, float, float]:
    """CPU so far: of the target (none of its own when it is the model server), the model server, this process."""
    own = usage_of(target.pid).cpu_s if target.pid != model.pid else 0.0
    times = os.times()
    return own, usage_of(model.pid).cpu_s, times.user + times.system


async def _one_response(target: Target) -> None:
    turns = Turns(target.url)
    exchanged, _ = await turns.ask({"model": JSON_MODEL, "input": QUESTION, "store": False})
    turns.close()
    if exchanged.status != 200:
        raise RuntimeError(f"{target.name} answers {exchanged.status}: {exchanged.body[:500]!r}")


async def _measure_chain(target: Target, plan: Plan) -> ChainResult:
    turns = Turns(target.url)
    times: list[float] = []
    previous: str | None = None
    for _ in range(plan.chain_turns):
        body: Json = {"model": JSON_MODEL, "input": QUESTION, "previous_response_id": previous}
        exchanged, response = await turns.ask(body if previous else {"model": JSON_MODEL, "input": QUESTION})
        if exchanged.status != 200:
            break
        previous = response["id"]
        times.append(1000 * exchanged.total_s)
    turns.close()
    if not times:
        return ChainResult(0, float("nan"), float("nan"), 1)
    first, last = times[1 : EDGE_TURNS + 1] or times, times[-EDGE_TURNS:]
    return ChainResult(len(times), median(first), median(last), plan.chain_turns - len(times))


async def _measure_tool(target: Target, plan: Plan, mcp_url: str) -> ToolResult:
    tool = {"type": "mcp", "server_label": "weather", "server_url": mcp_url, "require_approval": "never"}
    body: Json = {"model": "attache-demo", "input": QUESTION, "tools": [tool]}
    turns = Turns(target.url)
    times: list[float] = []
    errors = 0
    for _ in range(plan.tool_calls + 1):
        exchanged, response = await turns.ask(body)
        called = [item for item in response.get("output", []) if item["type"] == "mcp_call" and not item.get("error")]
        times.append(1000 * exchanged.total_s)
        errors += len(called) != 1
    turns.close()
    return ToolResult(times[0], median(times[1:]), errors)
