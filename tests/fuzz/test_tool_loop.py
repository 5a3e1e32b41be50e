"""Whatever a model says in its rounds, and a tool of its calls: one response, or one error; never a hang."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from attache_core.events.event import Event
from attache_core.json_codec import Json, decode, encode
from attache_core.tools.builtin import builtin_tool_types
from attache_core.tools.call_errors import execution_error
from attache_core.tools.gateway_tool import CallResult, Report
from attache_core.tools.mcp.server import McpServer
from attache_core.tools.mcp.servers import McpServers
from attache_core.tools.mcp.settings import McpSettings
from attache_core.turn.loop import LoopLimits, run_tool_loop
from attache_core.turn.round import run_round
from attache_core.types.turn import TurnRequest
from attache_filters.extproc.guard import guarded
from fuzz.create_requests import FUNCTION
from fuzz.damage import NOISE, damaged
from fuzz.model import Answer, FakeModel, plain, streamed
from fuzz.outcome import check_outcome, collect
from fuzz.test_upstream_answers import disordered

MCP: Json = {
    "type": "mcp",
    "server_label": "demo",
    "server_url": "http://127.0.0.1:1/mcp",
    "require_approval": "never",
}
TOOL: Json = {"name": "echo", "description": None, "input_schema": {"type": "object"}, "annotations": None}
LIMITS = LoopLimits(max_rounds=4, max_calls=6, max_output_bytes=40_000)
RESULTS = [CallResult("done"), CallResult(None), CallResult("\x00\ud83d" + "x" * 30_000)]
FAILURES = [CallResult(None, execution_error([{"type": "text", "text": text}])) for text in ("", "No.", "\ud83d")]


def item(name: str, arguments: Any) -> Json:
    return {"type": "function_call", "call_id": "call_1", "name": name, "arguments": arguments}


CALLS: Sequence[Json] = [
    {"object": "response", "status": "completed", "output": output, "usage": usage}
    for output, usage in [
        ([item("echo", '{"text": "x"}')], {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}),
        ([item("echo", "{"), item("echo", "[]"), item("get_forecast", "")], None),
        ([{"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]}], None),
        ([item("echo", '{"text": "\\ud83d \\u0000"}'), item("no_such_function", "{}")], {"input_tokens": None}),
    ]
]


class FakeServers(McpServers):
    """One server with one tool, which answers at once with the test's result."""

    def __init__(self, result: CallResult) -> None:
        self.settings = McpSettings(allow_private_addresses=True)
        self._result = result

    def knows_tools(self, server: McpServer) -> bool:
        return False

    async def list_tools(self, server: McpServer) -> tuple[Json, ...]:
        return (TOOL,)

    async def call_tool(
        self, server: McpServer, name: str, arguments: Json, report: Report | None = None
    ) -> CallResult:
        encode(arguments)
        return self._result


def as_stream(response: Json) -> Answer:
    """A plain answer as the stream of a server that sends nothing but its end."""
    return streamed([{"type": "response.completed", "response": response}])


ROUND: st.SearchStrategy[Answer] = (
    damaged(CALLS).map(plain)
    | damaged(CALLS).map(as_stream)
    | disordered().map(streamed)
    | st.sampled_from(NOISE).map(plain)
)


@settings(max_examples=150, deadline=None)
@given(st.lists(ROUND, min_size=1, max_size=4), st.sampled_from([*RESULTS, *FAILURES]), st.booleans())
async def test_any_rounds_are_one_valid_response_or_an_error(
    answers: list[Answer], result: CallResult, stream: bool
) -> None:
    model = FakeModel(*answers)

    def below(turn: TurnRequest) -> AsyncGenerator[Event, None]:
        return guarded("round", lambda _: run_round(turn, model))

    turn = TurnRequest({"model": "m", "input": "Hi", "tools": [FUNCTION, MCP], "stream": stream})
    outcome = await collect(run_tool_loop(turn, below, builtin_tool_types(FakeServers(result)), LIMITS))
    check_outcome(outcome, stream=stream)
    assert [decode(encode(asked)) for asked in model.asked] == model.asked
