"""What becomes of a turn when an MCP server fails: listing or calling, in each way, over each transport, real sockets.

Each case has a defined item and error, the response completes, the model is asked on, and no call is sent twice.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass

import pytest

from attache_core.events.event import Event, terminal_event
from attache_core.json_codec import Json
from attache_core.testing.mcp_server import Fault, RunningMcpServer, running_mcp_server
from attache_core.tools.builtin import builtin_tool_types
from attache_core.tools.call_errors import execution_error, protocol_error
from attache_core.tools.mcp.servers import open_mcp_servers
from attache_core.tools.mcp.settings import McpSettings
from attache_core.tools.scheduler import CallLimits
from attache_core.turn.loop import LoopLimits, run_tool_loop
from attache_core.types.turn import TurnRequest
from core.tools.mcp.relay import Relay, relay_to

SETTINGS = McpSettings(allow_private_addresses=True, connect_timeout_s=1.5)
LIMITS = LoopLimits(calls=CallLimits(call_timeout_s=1.0))

UNREACHABLE = protocol_error(-32000, "The MCP server cannot be reached.")
CLOSED = protocol_error(-32000, "The MCP server closed the connection before it answered.")
TIMED_OUT = protocol_error(-32001, "The MCP server did not answer in time.")
CALL_TIMED_OUT = protocol_error(-32001, "The tool did not answer within 1 s.")
NOT_MCP = protocol_error(-32700, "The MCP server's answer is not valid MCP.")
BROKEN = protocol_error(-32050, "Out of order.")
FAILED = execution_error([{"type": "text", "text": "It broke.", "annotations": None, "meta": None}])

Sabotage = Callable[[str, RunningMcpServer, Relay], Awaitable[None]]
"""Makes the server fail at a JSON-RPC method from now on."""


def fault(fault: Fault) -> Sabotage:
    async def set_fault(method: str, server: RunningMcpServer, _: Relay) -> None:
        server.faults[method] = fault

    return set_fault


async def refuse(_: str, _server: RunningMcpServer, relay: Relay) -> None:
    await relay.refuse()


async def speak_gibberish(method: str, _: RunningMcpServer, relay: Relay) -> None:
    relay.gibberish_for = f'"{method}"'.encode()


async def let_the_tool_fail(_: str, _server: RunningMcpServer, _relay: Relay) -> None:
    """The model calls a tool that reports a failure."""


@dataclass(frozen=True)
class Case:
    """One way to fail; `arrives` is whether the call reaches the server."""

    sabotage: Sabotage
    list_error: Json
    call_error: Json
    arrives: bool = True


CASES = {
    "refused": Case(refuse, UNREACHABLE, UNREACHABLE, arrives=False),
    "timeout": Case(fault(Fault(hang=True)), TIMED_OUT, CALL_TIMED_OUT),
    "malformed HTTP": Case(speak_gibberish, CLOSED, CLOSED, arrives=False),
    "malformed JSON": Case(fault(Fault(body=b"{'a': 1")), NOT_MCP, NOT_MCP),
    "JSON-RPC error": Case(fault(Fault(error={"code": -32050, "message": "Out of order."})), BROKEN, BROKEN),
    "dies midway": Case(fault(Fault(body=b'{"jsonrpc"', cut_off=True)), CLOSED, CLOSED),
}
TOOL_ERROR = Case(let_the_tool_fail, {}, FAILED)

transports = pytest.mark.parametrize("transport", ["streamable_http", "sse"])
streams = pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])


class Model:
    """Calls the tool `fail` if it has it, then answers; `before_call` happens after the tools were listed."""

    def __init__(self, before_call: Callable[[], Awaitable[None]] | None = None) -> None:
        self.asked: list[Json] = []
        self._before_call = before_call

    async def __call__(self, turn: TurnRequest) -> AsyncGenerator[Event, None]:
        self.asked.append(turn.body)
        if len(self.asked) == 1 and self._before_call is not None:
            await self._before_call()
        call = {"type": "function_call", "call_id": "c", "name": "fail", "arguments": '{"message": "It broke."}'}
        said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Sorry."}]}
        output = [call] if turn.body.get("tools") and len(self.asked) == 1 else [said]
        yield terminal_event({"id": "r", "status": "completed", "output": output, "usage": None})


async def response_of(url: str, model: Model, *, stream: bool) -> Json:
    tool = {"type": "mcp", "server_label": "demo", "server_url": url, "require_approval": "never"}
    turn = TurnRequest({"model": "m", "input": "Hi", "tools": [tool], "stream": stream})
    async with open_mcp_servers(SETTINGS) as mcp:
        events = [event async for event in run_tool_loop(turn, model, builtin_tool_types(mcp), LIMITS)]
    response: Json = events[-1].data["response"]
    return response


@transports
@streams
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_list_that_fails_is_an_item_with_an_error_and_the_model_is_asked_without_tools(
    case: Case, transport: str, stream: bool
) -> None:
    model = Model()
    async with running_mcp_server(transport=transport) as server, relay_to(server.url) as relay:
        await case.sabotage("tools/list", server, relay)
        response = await response_of(relay.url, model, stream=stream)
    listed, message = response["output"]
    del listed["id"]
    error = case.list_error["message"]
    assert listed == {"type": "mcp_list_tools", "server_label": "demo", "tools": [], "error": error}
    assert (response["status"], message["content"][0]["text"]) == ("completed", "Sorry.")
    assert ["tools" in asked for asked in model.asked] == [False]


@transports
@streams
@pytest.mark.parametrize("case", [*CASES.values(), TOOL_ERROR], ids=[*CASES.keys(), "tool error"])
async def test_call_that_fails_is_an_item_with_an_error_that_the_model_is_told_and_is_sent_once(
    case: Case, transport: str, stream: bool
) -> None:
    async with running_mcp_server(transport=transport) as server, relay_to(server.url) as relay:
        model = Model(lambda: case.sabotage("tools/call", server, relay))
        response = await response_of(relay.url, model, stream=stream)
        sent = len(server.calls)
    _, called, message = response["output"]
    assert (called["type"], called["status"], called["output"]) == ("mcp_call", "failed", None)
    assert called["error"] in (case.call_error, CLOSED if case.sabotage is refuse else case.call_error)
    assert (response["status"], message["content"][0]["text"]) == ("completed", "Sorry.")
    told = model.asked[1]["input"][-1]
    said = case.call_error.get("message") or "It broke."
    assert told["type"] == "function_call_output"
    assert said in told["output"] or case.sabotage is refuse
    assert sent == (1 if case.arrives else 0)
