"""From the results of a run to medians, ratios, a table. Pure; the numbers of one cell over its rounds are medians."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from textwrap import wrap

from benchmarks.histories import EDGE_TURNS, HistoriesResult, History, HistoryResult
from benchmarks.measure import CellResult, ChainResult, TargetResult, ToolResult
from benchmarks.targets import TARGETS
from benchmarks.tool_calls import CallResult, CallsResult

NAMES = {
    "direct": "model server alone",
    "envoy": "Envoy alone",
    "fused": "Attaché fused",
    "split": "Attaché split",
    "agentic": "agentic-api",
}
KINDS = {"json": "JSON", "sse": "SSE, 200 deltas at full speed", "paced": "SSE, 20 deltas at 40/s"}

ABOUT_CALLS = """\
A turn as JSON: two rounds of inference, and between them the call of a tool on a server that the gateway knows already.
One request at a time; medians of {repetitions} repetitions, in which all parts and gateways take turns. Without a
gateway, the rounds take {parts.first_round_ms:.2f} and {parts.second_round_ms:.2f} ms, the call on an open session
{parts.session_call_ms:.2f} ms with Attaché's client, {parts.sdk_call_ms:.2f} ms with the official SDK's. `over direct`
is what the turn takes longer than the rounds sent straight to the model server and Attaché's bare call, `over SDK` the
same with the SDK's, `at best` the first of the fastest of each, which other load disturbs least. `over rounds` is what
it takes longer than two turns of one round through the same gateway and the bare call: less than nothing where a second
round costs less than a second turn. CPU is the gateway's, for one such turn.
"""

ABOUT_HISTORIES = """\
A turn as JSON that continues so many turns of a chain of stored ones, `stored` itself or not, or is the next of a
conversation with so many items, and stored.
One request at a time; medians of {repetitions} repetitions, in which all gateways take turns. `added` is what the turn
takes longer than the model server's own with as many input items, which `alone` is; `at best` is that of the fastest of
each, which other load disturbs least.
"""

ABOUT_STORED = """\
What a turn of the chain of {turns} adds to the gateway's SQLite database: the length of all values in all rows, without
indexes; of its first {edge} turns and of its last.
"""

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
    """

    when: str
    machine: str
    versions: dict[str, str]
    settings: dict[str, object]
    generator: dict[int, float]
    targets: list[TargetResult]
    calls: CallsResult | None = None
    histories: HistoriesResult | None = None


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
        failures=dict(sum((Counter(result.failures) for result in results), Counter())),
    )


def cells_by_target(targets: Sequence[TargetResult]) -> dict[str, dict[CellKey, CellResult]]:
    """The median of each cell, by target."""
    gathered: dict[str, dict[CellKey, list[CellResult]]] = {}
    for result in targets:
        cells = gathered.setdefault(result.target, {})
        for cell in result.cells:
            cells.setdefault((cell.kind, cell.store, cell.connections), []).append(cell)
    return {target: {key: median_cell(results) for key, results in cells.items()} for target, cells in gathered.items()}


def markdown(run: Run) -> str:
    """The whole report."""
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    settings = ", ".join(f"{name} {value}" for name, value in run.settings.items())
    lines = [
        "# Measured",
        "",
        f"{run.when}; {run.machine}.",
        f"{versions}.",
        f"Settings: {settings}. Medians over the rounds; all processes share the machine's cores.",
        *(_load_lines(run) if run.targets else ()),
        *(("", "## A chain of turns, an MCP call, memory", "", *_lone_lines(run.targets)) if run.targets else ()),
        *(_call_lines(run.calls) if run.calls else ()),
        *(_history_lines(run.histories) if run.histories else ()),
    ]
    return "\n".join(lines) + "\n"


def _load_lines(run: Run) -> Iterator[str]:
    generator = ", ".join(f"{rate:,.0f}/s at {connections}" for connections, rate in run.generator.items())
    yield from (
        "",
        "`ratio` is that of requests a second to the model server alone at the same load; `added` is what the median",
        "latency grew by. CPU is milliseconds for each response, of the gateway's processes alone; in brackets, the",
        "model server's and the load generator's. Stored turns are compared with the model server's stateless ones.",
        f"The load generator alone, against Envoy's own answer: {generator}.",
        "",
    )
    yield from _cell_lines(cells_by_target(run.targets))


def _cell_lines(cells: Mapping[str, Mapping[CellKey, CellResult]]) -> Iterator[str]:
    for kind, store in (("json", False), ("json", True), ("sse", False), ("sse", True), ("paced", False)):
        rows = list(_rows(cells, kind, store=store))
        if rows:
            yield from ("", f"## {KINDS[kind]}{', stored' if store else ''}", "")
            yield "| connections | | requests/s | ratio | events/s | p50 ms | added | p99 ms | first event | CPU ms |"
            yield "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
            yield from rows


def _rows(cells: Mapping[str, Mapping[CellKey, CellResult]], kind: str, *, store: bool) -> Iterator[str]:
    direct = cells.get("direct", {})
    keys = sorted({key for found in cells.values() for key in found if key[:2] == (kind, store)})
    for key in keys:
        base = direct.get((kind, False, key[2]))
        for target in TARGETS:
            # Nothing is stored without Attaché: the stateless load is what a stored one is compared with.
            own = cells.get(target, {})
            cell = own.get(key) or (own.get((kind, False, key[2])) if target in ("direct", "envoy") else None)
            if cell is not None:
                yield _row(target, cell, base)


def _row(target: str, cell: CellResult, base: CellResult | None) -> str:
    ratio = f"{cell.requests_per_s / base.requests_per_s:.3f}" if base and base.requests_per_s else "-"
    added = f"{cell.p50_ms - base.p50_ms:+.2f}" if base and target != "direct" else "-"
    events = f"{cell.events_per_s:,.0f}" if cell.events_per_s else "-"
    first = f"{cell.first_event_p50_ms:.2f}" if cell.events_per_s else "-"
    cpu = f"{cell.target_cpu_ms:.2f} ({cell.model_cpu_ms:.2f}, {cell.generator_cpu_ms:.2f})"
    told = ", ".join(f"{count} {failure}" for failure, count in cell.failures.items())
    failed = f" **failed: {told}**" if told else ""
    return (
        f"| {cell.connections} | {NAMES[target]}{failed} | {cell.requests_per_s:,.0f} | {ratio} | {events} "
        f"| {cell.p50_ms:.2f} | {added} | {cell.p99_ms:.2f} | {first} | {cpu} |"
    )


def _lone_lines(results: Sequence[TargetResult]) -> Iterator[str]:
    yield "| | early turns ms | late turns ms | ratio | MCP turn, cold ms | warm ms | memory before MiB | after MiB |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for target in TARGETS:
        own = [result for result in results if result.target == target]
        if own:
            yield _lone_row(target, own)


def _lone_row(target: str, results: Sequence[TargetResult]) -> str:
    chains = [result.chain for result in results if result.chain]
    tools = [result.tool for result in results if result.tool]
    before = median(result.rss_before_mib for result in results)
    after = median(result.rss_after_mib for result in results)
    failed = sum(chain.errors for chain in chains) + sum(tool.errors for tool in tools)
    name = NAMES[target] + (f" **{failed} errors**" if failed else "")
    return f"| {name} | {_chain_text(chains)} | {_tool_text(tools)} | {before:.0f} | {after:.0f} |"


def _chain_text(chains: Sequence[ChainResult]) -> str:
    if not chains:
        return "- | - | -"
    first, last = median(chain.first_ms for chain in chains), median(chain.last_ms for chain in chains)
    return f"{first:.2f} | {last:.2f} (turn {max(chain.turns for chain in chains)}) | {last / first:.2f}"


def _call_lines(calls: CallsResult) -> Iterator[str]:
    yield from ("", "## One warm MCP call", "")
    yield from wrap(ABOUT_CALLS.format(repetitions=calls.repetitions, parts=calls.parts), 118)
    yield ""
    yield "| | turn ms | one round ms | over direct | at best | over SDK | over rounds | CPU ms |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    yield from map(_call_row, calls.gateways)


def _call_row(result: CallResult) -> str:
    stored = ", stored" if result.store else ""
    failed = f" **{result.errors} errors**" if result.errors else ""
    return (
        f"| {NAMES[result.target]}{stored}{failed} | {result.turn_ms:.2f} | {result.one_round_ms:.2f} "
        f"| {result.over_direct_ms:+.2f} | {result.over_direct_best_ms:+.2f} | {result.over_sdk_ms:+.2f} "
        f"| {result.over_rounds_ms:+.2f} | {result.cpu_ms:.1f} |"
    )


def _history_lines(histories: HistoriesResult) -> Iterator[str]:
    yield from ("", "## A turn after a history", "")
    yield from wrap(ABOUT_HISTORIES.format(repetitions=histories.repetitions), 118)
    yield ""
    yield "| after | | turn ms | alone ms | added | at best |"
    yield "| --- | --- | ---: | ---: | ---: | ---: |"
    yield from map(_history_row, histories.turns)
    edge = min(EDGE_TURNS, histories.chain_turns)
    yield ""
    yield from wrap(ABOUT_STORED.format(turns=histories.chain_turns, edge=edge), 118)
    yield ""
    yield "| | bytes of a first turn | of a last turn | ratio |"
    yield "| --- | ---: | ---: | ---: |"
    for stored in histories.stored:
        ratio = stored.last_bytes / stored.first_bytes
        yield f"| {NAMES[stored.target]} | {stored.first_bytes:,.0f} | {stored.last_bytes:,.0f} | {ratio:.2f} |"


def _history_row(result: HistoryResult) -> str:
    failed = f" **{result.errors} errors**" if result.errors else ""
    return (
        f"| {_history_text(result.history)} | {NAMES[result.target]}{failed} | {result.turn_ms:.2f} "
        f"| {result.direct_ms:.2f} | {result.added_ms:+.2f} | {result.added_best_ms:+.2f} |"
    )


def _history_text(history: History) -> str:
    if history.kind == "conversation":
        return f"{history.length} items of a conversation"
    turns = "turn" if history.length == 1 else "turns"
    return f"{history.length} {turns}{', stored' if history.store else ''}"


def _tool_text(tools: Sequence[ToolResult]) -> str:
    if not tools:
        return "- | -"
    return f"{median(tool.cold_ms for tool in tools):.1f} | {median(tool.warm_p50_ms for tool in tools):.1f}"
