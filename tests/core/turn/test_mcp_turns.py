"""Whole turns with MCP servers that list what other gateways stumbled over, on real servers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, Literal

import pytest
from mcp_types import Tool

from attache_core.events.event import Event, terminal_event
from attache_core.json_codec import Json, decode, encode
from attache_core.testing.mcp_server import Fault, McpServerOptions, RunningMcpServer, running_mcp_server
from attache_core.tools.builtin import builtin_tool_types
from attache_core.tools.mcp.servers import McpServers, open_mcp_servers
from attache_core.tools.mcp.settings import McpSettings
from attache_core.turn.loop import LoopLimits, run_tool_loop
from attache_core.types.turn import TurnRequest

DEFINED: Json = {
    "type": "object",
    "$defs": {"row": {"type": "array", "items": {"type": "number"}}},
    "properties": {"rows": {"type": "array", "items": {"$ref": "#/$defs/row"}}},
    "required": ["rows"],
}
EMPTY: Json = {"type": "object", "properties": {}}


Transport = Literal["streamable_http", "sse"]


class Model:
    """Calls what it is told to, one call a round, by the name that a tool's description tells it; then answers."""

    def __init__(self, *calls: tuple[str, Json]) -> None:
        self.asked: list[Json] = []
        self._calls = list(calls)

    async def __call__(self, turn: TurnRequest) -> AsyncGenerator[Event, None]:
        self.asked.append(turn.body)
        output: Json = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
        if self._calls:
            described, arguments = self._calls.pop(0)
            name = next(tool["name"] for tool in turn.body["tools"] if tool["description"] == described)
            call_id, text = f"c{len(self.asked)}", encode(arguments).decode()
            output = {"type": "function_call", "call_id": call_id, "name": name, "arguments": text}
        yield terminal_event({"id": "r", "status": "completed", "output": [output], "usage": None})


@pytest.fixture
async def mcp() -> AsyncIterator[McpServers]:
    async with open_mcp_servers(McpSettings(allow_private_addresses=True)) as servers:
        yield servers


async def response_of(mcp: McpServers, server: RunningMcpServer, model: Model, given: Any = "Hi") -> Json:
    tool = {"type": "mcp", "server_label": "demo", "server_url": server.url, "require_approval": "never"}
    turn = TurnRequest({"model": "m", "input": given, "tools": [tool]})
    [end] = [event async for event in run_tool_loop(turn, model, builtin_tool_types(mcp), LoopLimits())]
    response: Json = end.data["response"]
    return response


@pytest.mark.parametrize("transport", ["streamable_http", "sse"])
@pytest.mark.parametrize(
    ("name", "schema", "told", "arguments"),
    [
        ("plain", DEFINED, DEFINED, {"rows": [[1, 2.5], []]}),
        ("none", EMPTY, EMPTY, {}),
        ("null", {**EMPTY, "required": None}, EMPTY, {}),
        ("files.read all/ü", DEFINED, DEFINED, {"rows": []}),
        ("n" * 100, EMPTY, EMPTY, {}),
    ],
)
async def test_tool_of_any_schema_and_name_is_told_as_it_is_and_called_as_it_is_named(  # noqa: PLR0917
    mcp: McpServers, transport: Transport, name: str, schema: Json, told: Json, arguments: Json
) -> None:
    """The list is written as JSON, because the SDK's server leaves out what is null."""
    tool = Tool(name=name, description="It.", input_schema=EMPTY)
    listed_as: Json = {"tools": [{"name": name, "description": "It.", "inputSchema": schema}]}
    options = McpServerOptions("legacy", transport, tools=[tool], faults={"tools/list": Fault(result=listed_as)})
    async with running_mcp_server(options) as server:
        model = Model(("It.", arguments))
        response = await response_of(mcp, server, model)
        calls = server.calls
    assert calls == [(name, arguments)]
    listed, called, _ = response["output"]
    assert (called["name"], decode(called["arguments"].encode()), called["error"]) == (name, arguments, None)
    assert listed["tools"][0]["input_schema"] == schema
    assert model.asked[0]["tools"][0]["parameters"] == told


@pytest.mark.parametrize("transport", ["streamable_http", "sse"])
async def test_five_rounds_and_a_further_turn_list_once_and_show_the_list_once(mcp: McpServers, transport: str) -> None:
    said = "Says what it is told."
    async with running_mcp_server(transport=transport) as server:
        first = await response_of(mcp, server, Model(*((said, {"text": str(n)}) for n in range(5))))
        given = [{"role": "user", "content": "Hi"}, *first["output"], {"role": "user", "content": "So?"}]
        second = await response_of(mcp, server, Model((said, {"text": "again"})), given)
        counts = server.counts
    kinds = [[item["type"] for item in response["output"]] for response in (first, second)]
    assert kinds == [["mcp_list_tools", *["mcp_call"] * 5, "message"], ["mcp_call", "message"]]
    assert (counts["tools/list"], counts["tools/call"]) == (1, 6)
