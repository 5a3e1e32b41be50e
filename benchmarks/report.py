"""From a run to its report: the summary, what changed, and a table for everything that was measured. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from textwrap import wrap

from benchmarks.histories import EDGE_TURNS, HistoriesResult, History, HistoryResult
from benchmarks.measure import CellResult
from benchmarks.names import NAMES
from benchmarks.paced import EVENTS_PER_S, PacedResult
from benchmarks.processes import Memory
from benchmarks.ratios import Change
from benchmarks.run import CellKey, Run, cells_by_target, median_of
from benchmarks.summary import change_lines, summary_lines
from benchmarks.targets import GATEWAYS, TARGETS
from benchmarks.tool_calls import CallResult, CallsResult

KINDS = {"json": "JSON", "sse": "SSE, 200 deltas at full speed"}

ABOUT_SUMMARY = """\
`ratio` is Attaché's figure to agentic-api's, of this run; `aim` what it, or the figure, is to be. Attaché is fused, and
bypassed where it says so.
"""

ABOUT_LOADS = """\
`ratio` is that of requests a second to the model server alone at the same load; `added` is what the median latency
grew by. CPU is milliseconds for each response, of the gateway's processes alone; in brackets, the model server's and
the load generator's. Stored turns are compared with the model server's stateless ones.
"""

ABOUT_PACED = """\
So many streams at once, each with {rate} events a second, stored by gateways that can. The delay of a delta is from
when the model server sent it until its event was complete at the client; `added` is what it is more than without a
gateway, by the same percentile. CPU is in cores: seconds a second. A delay is worth nothing where the model server was
kept from sending what it should.
"""

ABOUT_STARTS = """\
`start` is from starting the processes until the first turn was answered, `first MCP call` a turn with the gateway's
first call on a server that it has not met. Memory is of all processes: PSS, and in brackets what each has for itself
(USS). `in flight` is what each of {streams} open streams adds to the idle gateway, `left` what each of as many more, in
a later wave, leaves behind once it has ended.
"""

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


def markdown(run: Run, changed: Sequence[Change] = (), since: str = "") -> str:
    """The whole report; `changed` is what became of the ratios of the run made `since`."""
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    settings = ", ".join(f"{name} {value}" for name, value in run.settings.items())
    lines = [
        "# Measured",
        "",
        f"{run.when}; {run.machine}.",
        f"{versions}.",
        f"Settings: {settings}. Medians over the rounds; all processes share the machine's cores.",
        *(f"**Left out, {NAMES[name]} did not start:** {why}" for name, why in run.left_out.items()),
        *("", *wrap(ABOUT_SUMMARY, 118), "", *summary_lines(run)),
        *(change_lines(since, changed) if since else ()),
        *(_load_lines(run) if run.targets else ()),
        *(_paced_lines(run) if run.targets else ()),
        *(_start_lines(run) if run.targets else ()),
        *(_call_lines(run.calls) if run.calls else ()),
        *(_history_lines(run.histories) if run.histories else ()),
    ]
    return "\n".join(lines) + "\n"


def _load_lines(run: Run) -> Iterator[str]:
    yield from ("", "## Loads", "", *wrap(ABOUT_LOADS, 118), "")
    yield from wrap(_bottleneck_text(run), 118)
    yield from _cell_lines(cells_by_target(run.targets))


def _bottleneck_text(run: Run) -> str:
    """That neither the model server nor the load generator holds the gateways up, or that it might."""
    generator = ", ".join(f"{rate:,.0f}/s at {connections}" for connections, rate in run.generator.items())
    cells = cells_by_target(run.targets)
    shares: list[tuple[float, str]] = [
        (alone.requests_per_s / fastest, f"{KINDS[key[0]]}, {key[2]} connections")
        for key, alone in cells.get("direct", {}).items()
        if (fastest := max((cells[name][key].requests_per_s for name in _gateways(cells, key)), default=0.0))
    ]
    beside = ""
    if shares:
        least, where = min(shares)
        beside = f" The model server alone: {least:.1f} times the fastest gateway ({where}), or more."
    return f"The load generator alone, against Envoy's own answer: {generator or '-'}.{beside}"


def _gateways(cells: Mapping[str, Mapping[CellKey, CellResult]], key: CellKey) -> list[str]:
    return [name for name in (*GATEWAYS, "bypass") if key in cells.get(name, {})]


def _cell_lines(cells: Mapping[str, Mapping[CellKey, CellResult]]) -> Iterator[str]:
    for kind, store in (("json", False), ("json", True), ("sse", False), ("sse", True)):
        rows = list(_rows(cells, kind, store=store))
        if rows:
            yield from ("", f"### {KINDS[kind]}{', stored' if store else ''}", "")
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
    name = NAMES[target] + _failed_text(cell.failures)
    return (
        f"| {cell.connections} | {name} | {cell.requests_per_s:,.0f} | {ratio} | {events} "
        f"| {cell.p50_ms:.2f} | {added} | {cell.p99_ms:.2f} | {first} | {cpu} |"
    )


def _paced_lines(run: Run) -> Iterator[str]:
    counts = sorted({paced.streams for result in run.targets for paced in result.paced})
    yield from ("", "## Streams at a model's speed", "", *wrap(ABOUT_PACED.format(rate=EVENTS_PER_S), 118), "")
    yield "| streams | | deltas/s | delay p50 ms | added | p99 ms | added | CPU | model server | load generator |"
    yield "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for count in counts:
        alone = run.paced("direct", count)
        for target in TARGETS:
            if paced := run.paced(target, count):
                yield _paced_row(target, paced, alone if target != "direct" else None)


def _paced_row(target: str, paced: PacedResult, alone: PacedResult | None) -> str:
    p50 = f"{paced.delay_p50_ms - alone.delay_p50_ms:+.2f}" if alone else "-"
    p99 = f"{paced.delay_p99_ms - alone.delay_p99_ms:+.2f}" if alone else "-"
    name = NAMES[target] + _failed_text(paced.failures) + ("" if paced.kept_up else " **model server held up**")
    return (
        f"| {paced.streams} | {name} | {paced.events_per_s:,.0f} "
        f"| {paced.delay_p50_ms:.2f} | {p50} | {paced.delay_p99_ms:.2f} | {p99} "
        f"| {paced.target_cores:.2f} | {paced.model_cores:.2f} | {paced.generator_cores:.2f} |"
    )


def _start_lines(run: Run) -> Iterator[str]:
    streams = max((result.memory.streams for result in run.targets if result.memory), default=0)
    yield from ("", "## Start and memory", "", *wrap(ABOUT_STARTS.format(streams=streams), 118), "")
    yield "| | start s | first MCP call ms | processes | idle MiB | in flight KiB | left KiB | after all loads MiB |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    yield from (_start_row(run, target) for target in TARGETS if run.memory(target))


def _start_row(run: Run, target: str) -> str:
    memory = run.memory(target)
    assert memory is not None
    results = run.of(target)
    starts = [result.start_s for result in results if result.start_s is not None]
    calls = [result.first_call_ms for result in results if result.first_call_ms is not None]
    after = median_of([result.after for result in results])
    return (
        f"| {NAMES[target]}{_failed_text(memory.failures)} | {f'{median(starts):.2f}' if starts else '-'} "
        f"| {f'{median(calls):.1f}' if calls else '-'} | {memory.idle.processes} | {_memory_text(memory.idle)} "
        f"| {memory.in_flight / 1024:.1f} | {memory.left / 1024:.1f} | {_memory_text(after)} |"
    )


def _memory_text(memory: Memory) -> str:
    return f"{memory.pss / 1024**2:.0f} ({memory.uss / 1024**2:.0f})"


def _failed_text(failures: Mapping[str, int]) -> str:
    told = ", ".join(f"{count} {failure}" for failure, count in failures.items())
    return f" **failed: {told}**" if told else ""


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
