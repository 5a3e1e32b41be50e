"""Everything of one run, and where in it a figure stands: medians over the rounds. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median

from benchmarks.histories import HistoriesResult, History, HistoryResult
from benchmarks.measure import CellResult, TargetResult
from benchmarks.memory import MemoryResult
from benchmarks.paced import PacedResult
from benchmarks.processes import Memory
from benchmarks.tool_calls import CallResult, CallsResult

CellKey = tuple[str, bool, int]
"""Kind, stored, connections."""


@dataclass(frozen=True, slots=True)
class Run:
    """Everything of one run.

    Attributes:
        machine: one line.
        versions: of what was measured and of what measured it.
        settings: what the run was told.
        generator: requests a second of the load generator alone, by connections.
        targets: one result for each target and round.
        calls: what turns with an MCP call cost; None when no gateway was measured.
        histories: what turns after histories cost, and store; None likewise.
        left_out: targets that did not start, and why.
    """

    when: str
    machine: str
    versions: dict[str, str]
    settings: dict[str, object]
    generator: dict[int, float]
    targets: list[TargetResult]
    calls: CallsResult | None = None
    histories: HistoriesResult | None = None
    left_out: dict[str, str] = field(default_factory=dict)

    @property
    def errors(self) -> int:
        """How many turns went wrong."""
        calls = sum(result.errors for result in self.calls.gateways) if self.calls else 0
        histories = sum(result.errors for result in self.histories.turns) if self.histories else 0
        return calls + histories + sum(result.errors for result in self.targets)

    def of(self, target: str) -> list[TargetResult]:
        """The results of one target, by round."""
        return [result for result in self.targets if result.target == target]

    def cell(self, target: str, kind: str, *, store: bool, connections: int) -> CellResult | None:
        """The median of a cell, None when it was not measured."""
        key = (kind, store, connections)
        return cells_by_target(self.of(target)).get(target, {}).get(key)

    def paced(self, target: str, streams: int) -> PacedResult | None:
        """The median of so many streams at a model's speed."""
        found = [paced for result in self.of(target) for paced in result.paced if paced.streams == streams]
        return _median_paced(found) if found else None

    def memory(self, target: str) -> MemoryResult | None:
        """The median of a target's memory."""
        found = [result.memory for result in self.of(target) if result.memory]
        return _median_memory(found) if found else None

    def call(self, target: str, *, store: bool) -> CallResult | None:
        """Turns with a warm MCP call."""
        gateways = self.calls.gateways if self.calls else []
        return next((result for result in gateways if (result.target, result.store) == (target, store)), None)

    def history(self, target: str, history: History) -> HistoryResult | None:
        """Turns after a history."""
        turns = self.histories.turns if self.histories else []
        return next((result for result in turns if (result.target, result.history) == (target, history)), None)


def median_cell(results: Sequence[CellResult]) -> CellResult:
    """The same cell measured several times: the median of each number, the sum of errors."""
    first = results[0]

    def middle(name: str) -> float:
        values: list[float] = [getattr(result, name) for result in results]
        return median(values)

    return CellResult(
        kind=first.kind,
        store=first.store,
        connections=first.connections,
        requests_per_s=middle("requests_per_s"),
        events_per_s=middle("events_per_s"),
        p50_ms=middle("p50_ms"),
        p99_ms=middle("p99_ms"),
        first_event_p50_ms=middle("first_event_p50_ms"),
        target_cpu_ms=middle("target_cpu_ms"),
        model_cpu_ms=middle("model_cpu_ms"),
        generator_cpu_ms=middle("generator_cpu_ms"),
        responses=round(middle("responses")),
        failures=_all_failures(result.failures for result in results),
    )


def cells_by_target(targets: Sequence[TargetResult]) -> dict[str, dict[CellKey, CellResult]]:
    """The median of each cell, by target."""
    gathered: dict[str, dict[CellKey, list[CellResult]]] = {}
    for result in targets:
        cells = gathered.setdefault(result.target, {})
        for cell in result.cells:
            cells.setdefault((cell.kind, cell.store, cell.connections), []).append(cell)
    return {target: {key: median_cell(results) for key, results in cells.items()} for target, cells in gathered.items()}


def _median_paced(results: Sequence[PacedResult]) -> PacedResult:
    return PacedResult(
        streams=results[0].streams,
        store=results[0].store,
        events_per_s=median(result.events_per_s for result in results),
        delay_p50_ms=median(result.delay_p50_ms for result in results),
        delay_p99_ms=median(result.delay_p99_ms for result in results),
        target_cores=median(result.target_cores for result in results),
        model_cores=median(result.model_cores for result in results),
        generator_cores=median(result.generator_cores for result in results),
        failures=_all_failures(result.failures for result in results),
    )


def _median_memory(results: Sequence[MemoryResult]) -> MemoryResult:
    return MemoryResult(
        idle=median_of([result.idle for result in results]),
        streams=results[0].streams,
        in_flight=median(result.in_flight for result in results),
        left=median(result.left for result in results),
        failures=_all_failures(result.failures for result in results),
    )


def median_of(memories: Sequence[Memory]) -> Memory:
    """The median of each number."""
    return Memory(
        pss=round(median(memory.pss for memory in memories)),
        uss=round(median(memory.uss for memory in memories)),
        anonymous=round(median(memory.anonymous for memory in memories)),
        processes=max(memory.processes for memory in memories),
    )


def _all_failures(each: Iterable[dict[str, int]]) -> dict[str, int]:
    return dict(sum((Counter(failures) for failures in each), Counter()))
