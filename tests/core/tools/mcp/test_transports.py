"""Which transport a server is spoken to over, and what the older one, HTTP with SSE, refuses."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from attache_core.json_codec import Json
from attache_core.testing.mcp_server import Fault, RunningMcpServer, running_mcp_server
from attache_core.tools.call_errors import http_error, protocol_error
from attache_core.tools.gateway_tool import CallResult
from attache_core.tools.mcp.failure import McpServerError
from attache_core.tools.mcp.server import Credentials, McpServer
from attache_core.tools.mcp.servers import McpServers, open_mcp_servers
from attache_core.tools.mcp.settings import McpSettings
from core.tools.mcp.relay import relay_to

SETTINGS = McpSettings(allow_private_addresses=True, connect_timeout_s=5, max_message_bytes=64 * 1024)
BRIEF = SETTINGS.model_copy(update={"idle_timeout_s": 0.0})

ELSEWHERE = protocol_error(-32700, "The MCP server wants its messages sent to another origin than its own.")
CLOSED = protocol_error(-32000, "The MCP server closed the connection before it answered.")
TOO_LARGE = protocol_error(-32700, "The MCP server's answer is larger than the gateway's mcp.max_message_bytes.")


async def error_of(mcp: McpServers, server: McpServer) -> Json:
    with pytest.raises(McpServerError) as raised:
        await mcp.list_tools(server)
    return raised.value.error


def posts_of_a_handshake(server: RunningMcpServer) -> int:
    return server.counts["server/discover"] + server.counts["initialize"]


async def until_closed(mcp: McpServers, server: RunningMcpServer, declared: McpServer) -> None:
    while mcp.knows_tools(declared):  # noqa: ASYNC110 - nobody is told that a session was closed
        await asyncio.sleep(0)
    await server.until(lambda seen: seen.open_requests == 0)


async def test_server_that_speaks_only_the_older_transport_is_found_out_once() -> None:
    async with asyncio.timeout(10), running_mcp_server(transport="sse") as server, open_mcp_servers(BRIEF) as mcp:
        declared = McpServer(server.url)
        await mcp.list_tools(declared)
        first = posts_of_a_handshake(server)
        await until_closed(mcp, server, declared)
        await mcp.list_tools(declared)
        second = posts_of_a_handshake(server) - first
    assert (first, second, server.counts["GET"]) == (3, 1, 2)


async def test_server_that_was_found_to_speak_the_older_transport_may_speak_the_newer_one_later() -> None:
    async with (
        asyncio.timeout(10),
        running_mcp_server(transport="sse", path="/mcp") as old,
        running_mcp_server() as new,
        relay_to(old.url) as relay,
        open_mcp_servers(BRIEF) as mcp,
    ):
        declared = McpServer(relay.url)
        await mcp.list_tools(declared)
        await until_closed(mcp, old, declared)
        relay.lead_to(new.url)
        await mcp.list_tools(declared)
        first = new.counts["GET"]
        await until_closed(mcp, new, declared)
        await mcp.list_tools(declared)
    assert (first, new.counts["GET"], new.counts["tools/list"]) == (1, 1, 2)


@pytest.mark.parametrize("status", [400, 404, 405])
async def test_handshake_refused_as_by_another_transport_is_followed_by_one_look_for_an_event_stream(
    status: int,
) -> None:
    faults = {method: Fault(status=status, content_type="text/plain") for method in ("server/discover", "initialize")}
    async with (
        running_mcp_server(faults={**faults, "GET": Fault(status=405)}) as server,
        open_mcp_servers(SETTINGS) as mcp,
    ):
        error = await error_of(mcp, McpServer(server.url))
    assert error == http_error(status, f"The MCP server answered with HTTP status {status}.")
    assert server.counts["GET"] == 1


@pytest.mark.parametrize(
    "fault",
    [
        *(Fault(status=status) for status in (401, 403, 429, 500)),
        Fault(status=307, body=b"/sse"),
        Fault(status=400, error={"code": -32050, "message": "Out of order."}),
        Fault(body=b"<html>"),
    ],
)
async def test_server_that_fails_otherwise_is_not_asked_for_an_event_stream(fault: Fault) -> None:
    async with (
        running_mcp_server(protocol="legacy", faults={"initialize": fault}) as server,
        open_mcp_servers(SETTINGS) as mcp,
    ):
        await error_of(mcp, McpServer(server.url))
    assert server.counts["GET"] == 0


async def test_transport_that_the_operator_names_is_the_only_one_tried() -> None:
    async with (
        running_mcp_server(transport="sse") as sse,
        running_mcp_server() as http,
        open_mcp_servers(SETTINGS) as mcp,
    ):
        await mcp.list_tools(McpServer(sse.url, transport="sse"))
        over_http = await error_of(mcp, McpServer(sse.url, transport="streamable_http"))
        over_sse = await error_of(mcp, McpServer(http.url, transport="sse"))
    assert over_http == http_error(405, "The MCP server answered with HTTP status 405.")
    assert over_sse == http_error(406, "The MCP server answered with HTTP status 406.") or over_sse["code"] == 400
    assert posts_of_a_handshake(http) == 0


class TestEventStream:
    """Of a server that speaks only HTTP with SSE."""

    @pytest.mark.parametrize(
        "endpoint",
        [
            "http://127.0.0.1:{other}/messages",
            "//127.0.0.1:{other}/messages",
            "https://127.0.0.1:{own}/messages",
            "http://localhost:{own}/messages",
            "http://me:secret@127.0.0.1:{own}/messages",
            "http://127.0.0.1:99999/messages",
            "ftp://127.0.0.1/messages",
            "http://[::",
            "\x80",
        ],
    )
    async def test_messages_are_sent_to_the_servers_own_origin_only(self, endpoint: str) -> None:
        async with running_mcp_server() as other, running_mcp_server(transport="sse") as server:
            ports = {"own": server.url.split(":")[2].split("/")[0], "other": other.url.split(":")[2].split("/")[0]}
            body = b"event: endpoint\ndata: " + endpoint.format(**ports).encode("latin-1") + b"\n\n"
            server.faults["GET"] = Fault(content_type="text/event-stream", body=body)
            async with open_mcp_servers(SETTINGS) as mcp:
                error = await error_of(mcp, McpServer(server.url, Credentials(authorization="secret")))
        assert (error, other.requests) == (ELSEWHERE, [])

    @pytest.mark.parametrize(
        ("fault", "error"),
        [
            (Fault(content_type="text/event-stream", body=b"event: message\ndata: {}\n\n"), CLOSED),
            (Fault(content_type="text/event-stream", body=b": hm\n\n", cut_off=True), CLOSED),
            (Fault(content_type="text/event-stream", body=b"data: " + b"x" * 70_000), TOO_LARGE),
            (Fault(status=307, body=b"/elsewhere"), http_error(405, "The MCP server answered with HTTP status 405.")),
            (Fault(body=b"{}"), http_error(405, "The MCP server answered with HTTP status 405.")),
        ],
    )
    async def test_stream_that_names_no_place_for_messages_is_an_error(self, fault: Fault, error: Json) -> None:
        async with (
            running_mcp_server(transport="sse", faults={"GET": fault}) as server,
            open_mcp_servers(SETTINGS) as mcp,
        ):
            assert await error_of(mcp, McpServer(server.url)) == error

    async def test_stream_that_never_names_a_place_for_messages_times_out(self) -> None:
        brief = SETTINGS.model_copy(update={"connect_timeout_s": 0.5})
        async with (
            running_mcp_server(transport="sse", faults={"GET": Fault(hang=True)}) as server,
            open_mcp_servers(brief) as mcp,
        ):
            error = await error_of(mcp, McpServer(server.url))
        assert error == protocol_error(-32001, "The MCP server did not answer in time.")

    @pytest.mark.parametrize(
        ("fault", "error", "lives"),
        [
            (Fault(status=500), http_error(500, "The MCP server answered with HTTP status 500."), True),
            (Fault(status=404), http_error(404, "The MCP server answered with HTTP status 404."), False),
            (Fault(error={"code": -5, "message": "no"}), protocol_error(-5, "no"), True),
            (Fault(body=b"x" * 70_000), TOO_LARGE, False),
            (Fault(body=b"[]"), protocol_error(-32700, "The MCP server's answer is not valid MCP."), False),
        ],
    )
    async def test_call_that_fails_ends_the_session_only_where_that_is_of_no_more_use(
        self, fault: Fault, error: Json, lives: bool
    ) -> None:
        async with running_mcp_server(transport="sse") as server, open_mcp_servers(SETTINGS) as mcp:
            declared = McpServer(server.url)
            await mcp.list_tools(declared)
            server.faults_once["tools/call"] = fault
            failed = await mcp.call_tool(declared, "echo", {"text": "x"})
            recovered = await mcp.call_tool(declared, "echo", {"text": "y"})
        assert (failed, recovered) == (CallResult(None, error), CallResult("y"))
        assert server.counts["notifications/initialized"] == (1 if lives else 2)

    @pytest.mark.parametrize("kept_alive", [b"event: message\ndata:\n\n", b": ping\n\n", b"event: ping\ndata: 1\n\n"])
    async def test_what_keeps_the_stream_alive_is_no_message(self, kept_alive: bytes) -> None:
        async with running_mcp_server(transport="sse") as server, open_mcp_servers(SETTINGS) as mcp:
            declared = McpServer(server.url)
            await mcp.list_tools(declared)
            await server.event_streams[-1].write(kept_alive)
            assert await mcp.call_tool(declared, "echo", {"text": "x"}) == CallResult("x")
        assert server.counts["notifications/initialized"] == 1

    @pytest.mark.parametrize("flood", [b": ping\n\n", b'data: {"jsonrpc":"2.0","method":"notifications/message"}\n\n'])
    async def test_stream_without_end_ends_with_its_session(self, flood: bytes) -> None:
        async with running_mcp_server(transport="sse") as server, open_mcp_servers(SETTINGS) as mcp:
            declared = McpServer(server.url)
            await mcp.list_tools(declared)
            async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
                calling = tasks.create_task(mcp.call_tool(declared, "slow", {}))
                await server.until(lambda seen: len(seen.calls) == 1)
                await server.event_streams[-1].write(flood * (70_000 // len(flood)))
                failed = await calling
            recovered = await mcp.call_tool(declared, "echo", {"text": "y"})
        assert (failed, recovered) == (CallResult(None, TOO_LARGE), CallResult("y"))

    async def test_each_of_many_answers_may_be_as_long_as_one(self) -> None:
        text = "x" * (SETTINGS.max_message_bytes - 1000)
        async with running_mcp_server(transport="sse") as server, open_mcp_servers(SETTINGS) as mcp:
            declared = McpServer(server.url)
            async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
                calls = [tasks.create_task(mcp.call_tool(declared, "echo", {"text": text})) for _ in range(5)]
        assert [call.result() for call in calls] == [CallResult(text)] * 5

    async def test_server_that_asks_and_takes_no_reply_holds_up_no_call(self) -> None:
        few = SETTINGS.model_copy(update={"max_connections_per_session": 40})
        ping = b'data: {"jsonrpc":"2.0","id":"%d","method":"ping"}\n\n'
        async with running_mcp_server(transport="sse") as server, open_mcp_servers(few) as mcp:
            declared = McpServer(server.url)
            await mcp.list_tools(declared)
            server.faults["POST"] = Fault(hang=True)
            await server.event_streams[-1].write(b"".join(ping % number for number in range(200)))
            await server.until(lambda seen: seen.counts["POST"] >= 16)
            async with asyncio.timeout(4):
                result = await mcp.call_tool(declared, "echo", {"text": "x"})
        assert (result, server.counts["POST"]) == (CallResult("x"), 16)

    async def test_call_of_a_stream_that_breaks_off_fails_alone_among_sessions(self) -> None:
        async with (
            running_mcp_server(transport="sse") as dying,
            running_mcp_server(transport="sse") as living,
            open_mcp_servers(SETTINGS) as mcp,
            asyncio.TaskGroup() as tasks,
        ):
            calls: list[Any] = [
                tasks.create_task(mcp.call_tool(McpServer(server.url), "slow", {})) for server in (dying, living)
            ]
            for server in (dying, living):
                await server.until(lambda seen: len(seen.calls) == 1)
            dying.faults["tools/list"] = Fault(cut_off=True)
            with pytest.raises(McpServerError):
                await mcp.list_tools(McpServer(dying.url))
            living.release.set()
            results = [await call for call in calls]
        assert results == [CallResult(None, CLOSED), CallResult("released")]
