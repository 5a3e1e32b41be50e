"""The tools of the MCP server for the demo and for tests: they answer, fail, hang, or wait to be released."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from typing import Any

from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import ListenHandler
from mcp.shared.subscriptions import ToolsListChanged
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ImageContent,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from attache_core import json_codec
from attache_core.json_codec import Json
from attache_core.testing.mcp_observed import McpServerOptions, RunningMcpServer

_PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n not really").decode()
_REPORTS = 3
"""How often the tool `report` reports."""

ToolBody = Callable[[RunningMcpServer, Json], Awaitable[CallToolResult]]


def _text(text: str, *, is_error: bool = False) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=text)], is_error=is_error)


async def _get_weather(_: RunningMcpServer, arguments: Json) -> CallToolResult:
    city = str(arguments["city"])
    celsius = sum(city.encode()) % 35
    return CallToolResult(
        content=[TextContent(text=f"It is {celsius} °C and clear in {city}.")],
        structured_content={"city": city, "celsius": celsius, "sky": "clear"},
    )


async def _add(_: RunningMcpServer, arguments: Json) -> CallToolResult:
    return CallToolResult(content=[], structured_content={"sum": arguments["a"] + arguments["b"]})


async def _echo(_: RunningMcpServer, arguments: Json) -> CallToolResult:
    return _text(str(arguments["text"]))


async def _fail(_: RunningMcpServer, arguments: Json) -> CallToolResult:
    return _text(str(arguments["message"]), is_error=True)


async def _hang(server: RunningMcpServer, _: Json) -> CallToolResult:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        server.cancelled.append("hang")
        server.changed()
        raise
    raise AssertionError("unreachable")


async def _slow(server: RunningMcpServer, arguments: Json) -> CallToolResult:
    await server.release.wait()
    return _text(str(arguments.get("text", "released")))


async def _image(_: RunningMcpServer, _arguments: Json) -> CallToolResult:
    return CallToolResult(content=[ImageContent(data=_PIXEL, mime_type="image/png")])


async def _grown(running: RunningMcpServer, _: Json) -> CallToolResult:
    return _text(running.extra_tools[-1].name)


async def _refuse(_: RunningMcpServer, _arguments: Json) -> CallToolResult:
    raise MCPError(INVALID_PARAMS, "These parameters cannot be.")


def _schema(**properties: str) -> Json:
    return {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in properties.items()},
        "required": list(properties),
    }


def _tool(name: str, description: str, schema: Json, *, read_only: bool = True) -> Tool:
    return Tool(
        name=name,
        description=description,
        input_schema=schema,
        annotations=ToolAnnotations(read_only_hint=read_only),
    )


_BUILTIN: tuple[tuple[Tool, ToolBody], ...] = (
    (
        _tool("get_weather", "The weather in a city, invented.", _schema(city="string")),
        _get_weather,
    ),
    (_tool("add", "The sum of two numbers.", _schema(a="number", b="number")), _add),
    (_tool("echo", "Says what it is told.", _schema(text="string")), _echo),
    (_tool("fail", "Fails with a message.", _schema(message="string"), read_only=False), _fail),
    (_tool("hang", "Never answers.", _schema()), _hang),
    (_tool("slow", "Answers when it is released.", _schema()), _slow),
    (_tool("image", "A picture.", _schema()), _image),
    (_tool("grow", "Adds a tool to the server and tells its clients.", _schema(), read_only=False), _grown),
    (_tool("report", "Reports progress, and answers when it is released.", _schema()), _slow),
    (_tool("refuse", "Answers with a JSON-RPC error.", _schema()), _refuse),
)
BUILTIN_TOOL_NAMES = tuple(tool.name for tool, _ in _BUILTIN)


async def _grow(running: RunningMcpServer, ctx: ServerRequestContext[Any]) -> None:
    running.extra_tools.append(_tool(f"grown_{len(running.extra_tools)}", "It was not there before.", _schema()))
    if ctx.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS:
        await ctx.session.send_tool_list_changed()
    else:
        await running.bus.publish(ToolsListChanged())


def sdk_server(running: RunningMcpServer, options: McpServerOptions) -> Server[Any]:
    """The SDK's server with the tools that `options` ask for."""
    bodies = {tool.name: body for tool, body in _BUILTIN} if options.builtin else {}

    async def list_tools(_: object, params: PaginatedRequestParams | None) -> ListToolsResult:
        tools = [*(tool for tool, _body in _BUILTIN if options.builtin), *running.extra_tools]
        start = int(params.cursor) if params is not None and params.cursor is not None else 0
        end = start + options.page_size if options.page_size else len(tools)
        return ListToolsResult(tools=tools[start:end], next_cursor=str(end) if end < len(tools) else None)

    async def call_tool(ctx: ServerRequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
        body = bodies.get(params.name)
        if params.name == "grow" and options.builtin:
            await _grow(running, ctx)
        if params.name == "report" and options.builtin:
            for done in range(1, _REPORTS + 1):
                await ctx.session.report_progress(done, _REPORTS, f"step {done}")
        if body is not None:
            try:
                return await body(running, params.arguments or {})
            except KeyError as missing:
                return _text(f"missing argument {missing}", is_error=True)
        if any(tool.name == params.name for tool in running.extra_tools):
            return _text(f"{params.name} {json_codec.encode(params.arguments or {}).decode()}")
        raise MCPError(INVALID_PARAMS, f"Unknown tool {params.name!r}.")

    return Server(
        "attache-testing",
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_subscriptions_listen=ListenHandler(running.bus),
    )
