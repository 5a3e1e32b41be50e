"""Measure one started target: its start, its memory, its first MCP call, every cell of the plan, paced streams."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter

from benchmarks.load import Load, Measured, percentile, run_load
from benchmarks.memory import MemoryResult, measure_memory
from benchmarks.paced import PacedResult, measure_paced
from benchmarks.plan import JSON_MODEL, QUESTION, Cell, Plan, cells_of
from benchmarks.processes import Memory, memory_of
from benchmarks.targets import Target
from benchmarks.tool_calls import first_call_ms
from benchmarks.turns import Turns
from benchmarks.usage import CpuSeconds, cpu_s

WARMUP_CONNECTIONS = 4
"""More would only queue up, and be waited for."""


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
class TargetResult:
    """One target, started once; what was not measured of it is None.

    Attributes:
        start_s: from starting its processes until its first turn was answered.
        first_call_ms: a turn with the gateway's first MCP call, which finds the server and its tools as well.
        after: its memory after all loads.
    """

    target: str
    start_s: float | None
    first_call_ms: float | None
    memory: MemoryResult | None
    cells: list[CellResult]
    paced: list[PacedResult]
    after: Memory

    @property
    def errors(self) -> int:
        """How many responses and streams were bad."""
        cells = sum(cell.errors for cell in self.cells)
        return cells + sum(paced.errors for paced in self.paced) + (self.memory.errors if self.memory else 0)


async def measure_target(
    target: Target, model: Target, plan: Plan, mcp_url: str | None, started_at: float
) -> TargetResult:
    """Measure everything of one target; `started_at` is when it was told to start, by `perf_counter`."""
    await _one_response(target)
    start_s = perf_counter() - started_at
    alone = target.pid == model.pid
    lone = not (alone or target.differs_in_loads_only)
    memory = await measure_memory(target, plan.memory_streams) if lone else None
    first_ms = await first_call_ms(target, mcp_url) if target.keeps_state and mcp_url else None
    cells = [await _measure_cell(cell, target, model, plan) for cell in cells_of(plan, target)]
    counts = () if target.differs_in_loads_only else plan.paced_streams
    paced = [await measure_paced(target, model, count, plan.paced_s) for count in counts]
    after = memory_of(target.pid)
    return TargetResult(target.name, None if alone else start_s, first_ms, memory, cells, paced, after)


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
    await run_load(replace(load, duration_s=plan.warmup_s, connections=min(cell.connections, WARMUP_CONNECTIONS)))
    before = cpu_s(target, model)
    measured = await run_load(load)
    return _cell_result(cell, measured, before, cpu_s(target, model))


def _cell_result(cell: Cell, measured: Measured, before: CpuSeconds, after: CpuSeconds) -> CellResult:
    good = len(measured.latencies_s)
    each_ms = 1000 / good if good else float("nan")
    return CellResult(
        kind=cell.kind,
        store=cell.store,
        connections=cell.connections,
        requests_per_s=measured.requests_per_s,
        events_per_s=measured.events_per_s,
        p50_ms=1000 * percentile(measured.latencies_s, 50),
        p99_ms=1000 * percentile(measured.latencies_s, 99),
        first_event_p50_ms=1000 * percentile(measured.first_events_s, 50),
        target_cpu_ms=(after.target - before.target) * each_ms,
        model_cpu_ms=(after.model - before.model) * each_ms,
        generator_cpu_ms=(after.generator - before.generator) * each_ms,
        responses=good,
        failures=measured.failures,
    )


async def _one_response(target: Target) -> None:
    turns = Turns(target.url)
    exchanged, _ = await turns.ask({"model": JSON_MODEL, "input": QUESTION, "store": False})
    turns.close()
    if exchanged.status != 200:
        raise RuntimeError(f"{target.name} answers {exchanged.status}: {exchanged.body[:500]!r}")
