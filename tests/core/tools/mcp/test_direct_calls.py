"""Calls without the SDK, on servers of the stateless protocol: they say what the SDK would, and read what it would."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import Tool

from attache_core import json_codec
from attache_core.json_codec import Json
from attache_core.testing.mcp_server import Fault, RunningMcpServer, running_mcp_server
from attache_core.tools.call_errors import protocol_error
from attache_core.tools.gateway_tool import CallProgress, CallResult
from attache_core.tools.mcp.direct_calls import _streamed_answer
from attache_core.tools.mcp.server import Credentials, McpServer
from attache_core.tools.mcp.servers import McpServers, open_mcp_servers
from attache_core.tools.mcp.settings import McpSettings

MIRRORING = Tool(
    name="ort für alle",
    input_schema={
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}, "text": {"type": "string"}},
    },
)
SAID_BY_BOTH = ("accept", "content-type", "mcp-protocol-version", "mcp-method", "mcp-name", "mcp-param-region", "host")


@asynccontextmanager
async def pool(settings: McpSettings, **options: Any) -> AsyncIterator[tuple[RunningMcpServer, McpServers]]:
    async with asyncio.timeout(10), running_mcp_server(**options) as server, open_mcp_servers(settings) as mcp:
        yield server, mcp


def streamed(*messages: Json) -> Fault:
    events = b"".join(map(_event, messages))
    return Fault(content_type="text/event-stream", body=b"id: 1\ndata:\n\n" + events)


def _event(message: Json) -> bytes:
    return b"data: " + json_codec.encode({"jsonrpc": "2.0", **message}) + b"\n\n"


async def test_call_is_the_one_that_the_sdk_makes(loopback: McpSettings) -> None:
    arguments = {"region": "Süd", "text": "x", "null": None}
    async with pool(loopback, tools=(MIRRORING,)) as (server, mcp):
        async with Client(streamable_http_client(server.url)) as client:
            await client.list_tools()
            await client.call_tool(MIRRORING.name, arguments)
        await mcp.list_tools(McpServer(server.url))
        result = await mcp.call_tool(McpServer(server.url), MIRRORING.name, arguments)
        theirs, ours = (request for request in server.requests if request.method == "tools/call")
    assert result == CallResult(f"{MIRRORING.name} {json_codec.encode(arguments).decode()}")
    assert {**ours.params, "_meta": None} == {**theirs.params, "_meta": None}
    assert ours.params["_meta"].keys() == theirs.params["_meta"].keys()
    assert [ours.headers.get(name) for name in SAID_BY_BOTH] == [theirs.headers.get(name) for name in SAID_BY_BOTH]
    assert ours.headers["mcp-param-region"] == "=?base64?U8O8ZA==?="


async def test_calls_have_ids_of_their_own(loopback: McpSettings) -> None:
    async with pool(loopback) as (server, mcp):
        for _ in range(3):
            await mcp.call_tool(McpServer(server.url), "echo", {"text": "x"})
        ids = [request.id for request in server.requests if request.method == "tools/call"]
    assert len(set(ids)) == 3


async def test_credentials_are_sent_and_nothing_that_they_say_replaces_the_protocols_headers(
    loopback: McpSettings,
) -> None:
    credentials = Credentials({"X-Key": "k", "Accept": "text/plain", "Mcp-Method": "tools/list"}, "s3cret")
    async with pool(loopback) as (server, mcp):
        await mcp.call_tool(McpServer(server.url, credentials), "echo", {"text": "x"})
        (call,) = (request for request in server.requests if request.method == "tools/call")
    assert (call.headers["authorization"], call.headers["x-key"]) == ("Bearer s3cret", "k")
    assert (call.headers["accept"], call.headers["mcp-method"]) == ("application/json, text/event-stream", "tools/call")


async def test_notifications_before_the_answer_of_a_stream_are_passed_over(loopback: McpSettings) -> None:
    progress = {"method": "notifications/progress", "params": {"progressToken": 1, "progress": 0.5}}
    answer = {"id": None, "result": {"resultType": "complete", "content": [{"type": "text", "text": "done"}]}}
    async with pool(loopback) as (server, mcp):
        await mcp.list_tools(McpServer(server.url))
        server.faults["tools/call"] = streamed(progress, answer)
        result = await mcp.call_tool(McpServer(server.url), "echo", {"text": "x"})
    assert result == CallResult("done")


@pytest.mark.parametrize(("protocol", "is_streamed"), [("modern", False), ("modern", True), ("legacy", False)])
async def test_answer_to_another_request_is_not_taken_for_the_result(
    loopback: McpSettings, protocol: str, *, is_streamed: bool
) -> None:
    """On a session that turns of several clients share, it could be another one's."""
    answer = {"id": "call-7", "result": {"resultType": "complete", "content": [{"type": "text", "text": "theirs"}]}}
    plain = Fault(body=json_codec.encode({"jsonrpc": "2.0", **answer}))
    async with pool(loopback, protocol=protocol) as (server, mcp):
        await mcp.list_tools(McpServer(server.url))
        server.faults["tools/call"] = streamed(answer) if is_streamed else plain
        result = await mcp.call_tool(McpServer(server.url), "echo", {"text": "x"})
    not_mcp = protocol_error(-32700, "The MCP server's answer is not valid MCP.")
    closed = protocol_error(-32000, "The MCP server closed the connection before it answered.")
    assert result == CallResult(None, closed if is_streamed else not_mcp)


@pytest.mark.parametrize("protocol", ["modern", "legacy"])
async def test_refusal_of_a_server_that_could_not_read_the_id_is_told(loopback: McpSettings, protocol: str) -> None:
    refusal = {"jsonrpc": "2.0", "id": "server-error", "error": {"code": -32600, "message": "Not so."}}
    async with pool(loopback, protocol=protocol) as (server, mcp):
        await mcp.list_tools(McpServer(server.url))
        server.faults["tools/call"] = Fault(status=400, body=json_codec.encode(refusal))
        result = await mcp.call_tool(McpServer(server.url), "echo", {"text": "x"})
    assert result == CallResult(None, protocol_error(-32600, "Not so."))


async def test_progress_that_comes_at_once_is_reported_once_and_what_is_none_is_passed_over(
    loopback: McpSettings,
) -> None:
    flood = [{"method": "notifications/progress", "params": {"progressToken": 1, "progress": n}} for n in range(9)]
    senseless: list[object] = [{"progress": "x"}, [], 1]
    broken = [{"method": "notifications/progress", "params": said} for said in senseless]
    answer = {"id": None, "result": {"resultType": "complete", "content": [{"type": "text", "text": "done"}]}}
    reports: list[CallProgress] = []
    told = [b"".join(map(_event, flood)), *map(_event, broken), _event(answer)]

    async def body() -> AsyncIterator[bytes]:
        for chunk in told:
            yield chunk

    end = await _streamed_answer(body(), "call-0", 10_000, reports.append)
    assert (end["result"], reports) == (answer["result"], [CallProgress(8.0)])


async def test_no_more_calls_are_under_way_than_a_session_may_have_connections(
    loopback: McpSettings, declare: Callable[..., Json]
) -> None:
    few = loopback.model_copy(update={"max_connections_per_session": 4})
    async with pool(few) as (server, mcp):
        await mcp.list_tools(McpServer(server.url))
        async with asyncio.TaskGroup() as tasks:
            calls = [
                tasks.create_task(mcp.call_tool(McpServer(server.url), "slow", {"text": str(number)}))
                for number in range(5)
            ]
            await server.until(lambda seen: len(seen.calls) == 2)
            await mcp.call_tool(McpServer(f"{server.url}?another"), "echo", {"text": "meanwhile"})
            waiting = len(server.calls) - 1
            server.release.set()
    assert (waiting, [call.result().output for call in calls]) == (2, [str(number) for number in range(5)])
