"""What a turn with one warm MCP call costs, beside what it is made of, taken in turn in one run.

Such a turn is two rounds of inference and a call. All parts are measured with one request under way, again and again in
the same order, so that whatever else the machine does meets them alike: the two rounds sent straight to the model
server; the call on an open session, made by the official SDK's client and by ours; then, through every gateway, a turn
of one round and a turn with the call. What a turn adds is taken within each repetition.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from statistics import median
from time import perf_counter

from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from attache_core.json_codec import Json
from attache_core.tools.mcp.server import McpServer
from attache_core.tools.mcp.servers import open_mcp_servers
from attache_core.tools.mcp.settings import McpSettings
from benchmarks.plan import JSON_MODEL, QUESTION
from benchmarks.processes import cpu_s_of
from benchmarks.targets import Target
from benchmarks.times import Times
from benchmarks.turns import Turns

CALL_MODEL = "bench-call"
TOOL = "get_weather"
ARGUMENTS = {"city": "Paris"}
WARMUP = 3
"""Repetitions that are not counted: the first one opens sessions."""

_SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
_FUNCTION: Json = {"type": "function", "name": TOOL, "description": "The weather in a city.", "parameters": _SCHEMA}


@dataclass(frozen=True, slots=True)
class PartsResult:
    """Medians of the parts of a turn with a call, outside of any gateway, in milliseconds."""

    first_round_ms: float
    second_round_ms: float
    sdk_call_ms: float
    session_call_ms: float


@dataclass(frozen=True, slots=True)
class CallResult:
    """Turns with a call through one gateway: medians, in milliseconds.

    Attributes:
        one_round_ms: a turn of one round, without tools.
        over_sdk_ms: what a turn takes longer than two rounds sent straight to the model server and the SDK's call.
        over_direct_ms: the same with the call of our own session, which is the faster one.
        over_direct_best_ms: the same of the fastest of each, which other load on the machine disturbs least.
        over_rounds_ms: what a turn takes longer than two turns of one round through the gateway and that call.
        cpu_ms: of the gateway's processes, for a turn.
        errors: turns that did not succeed, or without a good call.
    """

    target: str
    store: bool
    turn_ms: float
    one_round_ms: float
    over_sdk_ms: float
    over_direct_ms: float
    over_direct_best_ms: float
    over_rounds_ms: float
    cpu_ms: float
    errors: int


@dataclass(frozen=True, slots=True)
class CallsResult:
    """Everything of one measurement."""

    repetitions: int
    parts: PartsResult
    gateways: list[CallResult]


async def measure_calls(model: Target, gateways: Sequence[Target], mcp_url: str, repetitions: int) -> CallsResult:
    """Measure turns with a call through every gateway; see the module docstring."""
    times = Times()
    asking = {gateway.name: Turns(gateway.url) for gateway in gateways}
    async with AsyncExitStack() as stack:
        for turns in asking.values():
            stack.callback(turns.close)
        parts = await _parts(stack, model, mcp_url)
        turns_of = {
            _name(gateway, store=store, call=call): _asked(asking[gateway.name], store, mcp_url if call else "")
            for gateway in gateways
            for store in (False, True)
            for call in (False, True)
        }
        for number in range(repetitions + WARMUP):
            if number == WARMUP:
                times = Times()
            for name, ask in {**parts, **turns_of}.items():
                await times.measure(name, ask)
        results = []
        for gateway in gateways:
            for store in (False, True):
                before_s = cpu_s_of(gateway.pid)
                for _ in range(repetitions):
                    await turns_of[_name(gateway, store=store, call=True)]()
                cpu_ms = 1000 * (cpu_s_of(gateway.pid) - before_s) / repetitions
                results.append(_result(gateway, store, times, cpu_ms))
    return CallsResult(repetitions, PartsResult(*(median(times.taken[part]) for part in parts)), results)


async def first_call_ms(gateway: Target, mcp_url: str) -> float:
    """How long a turn with a call takes through a gateway that has not met the server yet; RuntimeError if it fails."""
    turns = Turns(gateway.url)
    ask = _asked(turns, store=True, mcp_url=mcp_url)
    started_at = perf_counter()
    good = await ask()
    taken_ms = 1000 * (perf_counter() - started_at)
    turns.close()
    if not good:
        raise RuntimeError(f"{gateway.name} fails its first MCP call")
    return taken_ms


async def _parts(stack: AsyncExitStack, model: Target, mcp_url: str) -> dict[str, Callable[[], Awaitable[bool]]]:
    """In the order of `PartsResult`."""
    direct = Turns(model.url)
    stack.callback(direct.close)
    client = await stack.enter_async_context(Client(streamable_http_client(mcp_url)))
    servers = await stack.enter_async_context(open_mcp_servers(McpSettings(allow_private_addresses=True)))
    server = McpServer(mcp_url)
    first: Json = {"model": CALL_MODEL, "input": QUESTION, "tools": [_FUNCTION], "store": False}
    call = {"call_id": "call_1", "name": TOOL, "arguments": '{"city": "Paris"}'}
    items: list[Json] = [
        {"type": "message", "role": "user", "content": QUESTION},
        {"type": "function_call", **call},
        {"type": "function_call_output", "call_id": "call_1", "output": "It is 21 °C and clear in Paris."},
    ]

    async def ask(body: Json) -> bool:
        return (await direct.ask(body))[0].status == 200

    async def sdk_call() -> bool:
        return not (await client.call_tool(TOOL, ARGUMENTS)).is_error

    async def session_call() -> bool:
        return (await servers.call_tool(server, TOOL, dict(ARGUMENTS))).error is None

    return {
        "first": lambda: ask(first),
        "second": lambda: ask({**first, "input": items}),
        "sdk call": sdk_call,
        "session call": session_call,
    }


def _asked(turns: Turns, store: bool, mcp_url: str) -> Callable[[], Awaitable[bool]]:
    """Asks for a turn with a call on `mcp_url`, or for one without tools; tells whether it went well."""
    plain: Json = {"model": JSON_MODEL, "input": QUESTION, "store": store}
    tool = {"type": "mcp", "server_label": "weather", "server_url": mcp_url, "require_approval": "never"}
    calling: Json = {**plain, "model": CALL_MODEL, "tools": [{**tool, "allowed_tools": [TOOL]}]}

    async def ask() -> bool:
        exchanged, response = await turns.ask(calling if mcp_url else plain)
        calls = [item for item in response.get("output", []) if item["type"] == "mcp_call" and not item.get("error")]
        return exchanged.status == 200 and len(calls) == bool(mcp_url)

    return ask


def _name(gateway: Target, *, store: bool, call: bool) -> str:
    return f"{gateway.name}, {'stored, ' if store else ''}{'call' if call else 'one round'}"


def _result(gateway: Target, store: bool, times: Times, cpu_ms: float) -> CallResult:
    turn, one_round = (_name(gateway, store=store, call=call) for call in (True, False))
    return CallResult(
        target=gateway.name,
        store=store,
        turn_ms=median(times.taken[turn]),
        one_round_ms=median(times.taken[one_round]),
        over_sdk_ms=times.added(turn, "first", "second", "sdk call"),
        over_direct_ms=times.added(turn, "first", "second", "session call"),
        over_direct_best_ms=times.added_at_best(turn, "first", "second", "session call"),
        over_rounds_ms=times.added(turn, one_round, one_round, "session call"),
        cpu_ms=cpu_ms,
        errors=times.errors[turn] + times.errors[one_round],
    )
