"""What a streaming client sees of the progress that an MCP server reports of a call, over each transport."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from attache_core.events.event import Event, terminal_event
from attache_core.json_codec import Json
from attache_core.testing.mcp_server import McpServerOptions, running_mcp_server
from attache_core.tools.builtin import builtin_tool_types
from attache_core.tools.mcp.servers import open_mcp_servers
from attache_core.tools.mcp.settings import McpSettings
from attache_core.tools.scheduler import CallLimits
from attache_core.turn.loop import LoopLimits, run_tool_loop
from attache_core.types.turn import TurnRequest
from core.events.canonical_stream import check_stream

IN_PROGRESS = "response.mcp_call.in_progress"


async def model(turn: TurnRequest) -> AsyncGenerator[Event, None]:
    call = {"type": "function_call", "call_id": "c", "name": "report", "arguments": "{}"}
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
    is_first = isinstance(turn.body["input"], str)
    yield terminal_event({"id": "r", "status": "completed", "output": [call if is_first else said], "usage": None})


@pytest.mark.parametrize(
    "options",
    [McpServerOptions(), McpServerOptions(protocol="legacy"), McpServerOptions(transport="sse")],
    ids=["modern", "legacy", "sse"],
)
@pytest.mark.parametrize(("interval_s", "least", "most"), [(1e-6, 2, 4), (3600.0, 2, 2)])
async def test_progress_is_told_by_the_event_of_a_call_in_progress_at_most_once_in_an_interval(
    options: McpServerOptions, interval_s: float, least: int, most: int
) -> None:
    """The first such event begins the item; a report is another one, before the result is there."""
    limits = LoopLimits(calls=CallLimits(report_interval_s=interval_s))
    seen: list[Event] = []
    async with (
        asyncio.timeout(10),
        running_mcp_server(options) as server,
        open_mcp_servers(McpSettings(allow_private_addresses=True)) as mcp,
    ):
        tool: Json = {"type": "mcp", "server_label": "demo", "server_url": server.url, "require_approval": "never"}
        turn = TurnRequest({"model": "m", "input": "Hi", "tools": [tool], "stream": True})
        async for event in run_tool_loop(turn, model, builtin_tool_types(mcp), limits):
            seen.append(event)
            if [each.type for each in seen].count(IN_PROGRESS) == least:
                server.release.set()
    check_stream(seen)
    told = [event.data for event in seen if event.type == IN_PROGRESS]
    called = next(item for item in seen[-1].data["response"]["output"] if item["type"] == "mcp_call")
    assert least <= len(told) <= most
    assert {(event["item_id"], event["output_index"]) for event in told} == {(called["id"], 1)}
    assert (called["status"], called["output"]) == ("completed", "released")
    assert next(seen for seen in server.requests if seen.method == "tools/call").params["_meta"]["progressToken"]


async def test_waiting_client_is_told_nothing_of_progress_but_the_result() -> None:
    async with (
        asyncio.timeout(10),
        running_mcp_server() as server,
        open_mcp_servers(McpSettings(allow_private_addresses=True)) as mcp,
    ):
        server.release.set()
        tool: Json = {"type": "mcp", "server_label": "demo", "server_url": server.url, "require_approval": "never"}
        turn = TurnRequest({"model": "m", "input": "Hi", "tools": [tool]})
        [end] = [event async for event in run_tool_loop(turn, model, builtin_tool_types(mcp), LoopLimits())]
    assert [item["type"] for item in end.data["response"]["output"]] == ["mcp_list_tools", "mcp_call", "message"]
