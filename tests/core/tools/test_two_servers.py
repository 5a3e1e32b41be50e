"""Two servers that offer a tool of the same name, through the whole loop: only the one that was meant is contacted."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable

import pytest
from mcp_types import Tool

from attache_core.events.event import Event, terminal_event
from attache_core.json_codec import Json
from attache_core.testing.mcp_server import McpServerOptions, running_mcp_server
from attache_core.tools.builtin import builtin_tool_types
from attache_core.tools.mcp.servers import open_mcp_servers
from attache_core.tools.mcp.settings import McpSettings
from attache_core.turn.loop import LoopLimits, run_tool_loop
from attache_core.types.turn import TurnRequest

Declare = Callable[..., Json]
OFFERED = McpServerOptions(builtin=False, tools=[Tool(name="search", input_schema={"type": "object"})])


class Model:
    """Calls one function in its first round and is content in its second."""

    def __init__(self, name: str) -> None:
        self.asked: list[Json] = []
        self._name = name

    async def __call__(self, turn: TurnRequest) -> AsyncGenerator[Event, None]:
        self.asked.append(turn.body)
        call = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": self._name, "arguments": '{"q":1}'}
        output = [call] if len(self.asked) == 1 else []
        yield terminal_event({"id": "r", "object": "response", "status": "completed", "output": output, "usage": None})


@pytest.mark.parametrize("meant", [0, 1])
async def test_call_of_a_name_that_two_servers_have_reaches_only_the_one_that_was_meant(
    loopback: McpSettings, declare: Declare, meant: int
) -> None:
    labels = ["a", "b"]
    model = Model(f"{labels[meant]}__search")
    async with (
        running_mcp_server(OFFERED) as first,
        running_mcp_server(OFFERED) as second,
        open_mcp_servers(loopback) as mcp,
    ):
        servers = [first, second]
        tools = [declare(server.url, label) for server, label in zip(servers, labels, strict=True)]
        turn = TurnRequest({"model": "m", "input": "hi", "tools": tools})
        [terminal] = [event async for event in run_tool_loop(turn, model, builtin_tool_types(mcp), LoopLimits())]
    calls = [item for item in terminal.data["response"]["output"] if item["type"] == "mcp_call"]
    assert [(item["server_label"], item["name"], item["output"]) for item in calls] == [
        (labels[meant], "search", 'search {"q":1}')
    ]
    assert [tool["name"] for tool in model.asked[0]["tools"]] == ["a__search", "b__search"]
    [told] = [item for item in model.asked[1]["input"] if item["type"] == "function_call"]
    assert told["name"] == f"{labels[meant]}__search"
    assert (servers[meant].calls, servers[1 - meant].calls) == ([("search", {"q": 1})], [])
