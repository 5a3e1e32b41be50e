"""Sessions and tool lists over many turns, on real servers of both protocol generations and over both transports."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from attache_core.json_codec import Json
from attache_core.testing.mcp_server import (
    BUILTIN_TOOL_NAMES,
    Fault,
    McpServerOptions,
    RunningMcpServer,
    running_mcp_server,
)
from attache_core.tools.call_errors import http_error
from attache_core.tools.gateway_tool import CallResult
from attache_core.tools.mcp.failure import McpServerError
from attache_core.tools.mcp.server import Credentials, McpServer
from attache_core.tools.mcp.servers import McpServers, open_mcp_servers
from attache_core.tools.mcp.settings import McpSettings
from attache_core.tools.scheduler import CallLimits, GatewayCall, scheduled
from core.tools.registries import listings, registry_of

Declare = Callable[..., Json]
OPENINGS = {"modern": "server/discover", "legacy": "initialize", "sse": "notifications/initialized"}
"""What a session is opened with, once; by how the server is to speak."""

protocols = pytest.mark.parametrize("protocol", ["modern", "legacy", "sse"])


@asynccontextmanager
async def pool(
    settings: McpSettings, protocol: str = "modern", **options: Any
) -> AsyncIterator[tuple[RunningMcpServer, McpServers]]:
    spoken: dict[str, Any] = {"transport": "sse"} if protocol == "sse" else {"protocol": protocol}
    async with (
        asyncio.timeout(10),
        running_mcp_server(McpServerOptions(), **spoken, **options) as server,
        open_mcp_servers(settings) as mcp,
    ):
        yield server, mcp


@protocols
async def test_five_turns_list_once(loopback: McpSettings, declare: Declare, protocol: str) -> None:
    async with pool(loopback, protocol) as (server, mcp):
        registries = [await registry_of([declare(server.url)], mcp) for _ in range(5)]
        counts = server.counts
    assert all(listings(registry) == listings(registries[0]) for registry in registries)
    assert (counts["tools/list"], counts[OPENINGS[protocol]]) == (1, 1)


@protocols
async def test_turns_at_the_same_time_share_one_session_and_one_list(
    loopback: McpSettings, declare: Declare, protocol: str
) -> None:
    async with pool(loopback, protocol) as (server, mcp), asyncio.TaskGroup() as tasks:
        for _ in range(10):
            tasks.create_task(registry_of([declare(server.url)], mcp))
        await server.until(lambda seen: seen.counts["tools/list"] == 1)
    assert (server.counts["tools/list"], server.counts[OPENINGS[protocol]]) == (1, 1)


@protocols
async def test_twenty_calls_at_once_share_one_session(loopback: McpSettings, declare: Declare, protocol: str) -> None:
    async with pool(loopback, protocol) as (server, mcp):
        slow = (await registry_of([declare(server.url)], mcp)).gateway_tools["slow"]
        calls = [GatewayCall(slow, f'{{"text": "{n}"}}') for n in range(20)]
        async with scheduled(calls, CallLimits(max_parallel_calls=20)) as results:
            await server.until(lambda seen: len(seen.calls) == 20)
            server.release.set()
            outputs = [(await result).output for result in results]
        openings = server.counts[OPENINGS[protocol]]
    assert (outputs, openings) == ([str(n) for n in range(20)], 1)


async def test_list_is_asked_for_again_when_its_time_is_over(loopback: McpSettings, declare: Declare) -> None:
    async with pool(loopback.model_copy(update={"list_ttl_s": 0.0})) as (server, mcp):
        for _ in range(3):
            await registry_of([declare(server.url)], mcp)
        assert (server.counts["tools/list"], server.counts["server/discover"]) == (3, 1)


@protocols
async def test_list_is_asked_for_again_when_the_server_says_it_changed(
    loopback: McpSettings, declare: Declare, protocol: str
) -> None:
    async with pool(loopback, protocol) as (server, mcp):
        tools = [declare(server.url)]
        before = await registry_of(tools, mcp)
        await server.until(lambda seen: bool({"subscriptions/listen", "GET"} & set(seen.counts)))
        while mcp.knows_tools(McpServer(server.url)):  # the server may not have begun to tell this client yet
            await before.gateway_tools["grow"].call({})
        after = await registry_of(tools, mcp)
    assert set(BUILTIN_TOOL_NAMES) == set(before.gateway_tools)
    assert "grown_0" in after.gateway_tools
    assert server.counts["tools/list"] == 2


async def test_expired_session_is_opened_again_once_for_a_list(loopback: McpSettings, declare: Declare) -> None:
    settings = loopback.model_copy(update={"list_ttl_s": 0.0})
    async with pool(settings, "legacy") as (server, mcp):
        await registry_of([declare(server.url)], mcp)
        server.faults_once["tools/list"] = Fault(status=404)
        registry = await registry_of([declare(server.url)], mcp)
    assert listings(registry)[0].error is None
    assert (server.counts["initialize"], server.counts["tools/list"]) == (2, 3)


async def test_session_that_expires_twice_is_an_error(loopback: McpSettings, declare: Declare) -> None:
    settings = loopback.model_copy(update={"list_ttl_s": 0.0})
    async with pool(settings, "legacy") as (server, mcp):
        await registry_of([declare(server.url)], mcp)
        server.faults["tools/list"] = Fault(status=404)
        registry = await registry_of([declare(server.url)], mcp)
    assert listings(registry)[0].error == "The MCP server answered with HTTP status 404."
    assert (server.counts["initialize"], server.counts["tools/list"]) == (2, 3)


async def test_call_on_an_expired_session_is_not_repeated_and_the_next_gets_a_new_one(
    loopback: McpSettings, declare: Declare
) -> None:
    async with pool(loopback, "legacy") as (server, mcp):
        echo = (await registry_of([declare(server.url)], mcp)).gateway_tools["echo"]
        server.faults_once["tools/call"] = Fault(status=404)
        expired, renewed = await echo.call({"text": "1"}), await echo.call({"text": "2"})
    error = http_error(404, "The MCP server answered with HTTP status 404.")
    assert (expired, renewed) == (CallResult(None, error), CallResult("2"))
    assert server.calls == [("echo", {"text": "1"}), ("echo", {"text": "2"})]
    assert server.counts["initialize"] == 2


async def test_server_that_was_restarted_is_connected_anew(loopback: McpSettings, declare: Declare) -> None:
    settings = loopback.model_copy(update={"list_ttl_s": 0.0})
    async with open_mcp_servers(settings) as mcp:
        async with running_mcp_server(protocol="legacy") as first:
            await registry_of([declare(first.url)], mcp)
            port = int(first.url.split(":")[2].split("/")[0])
        async with running_mcp_server(protocol="legacy", port=port) as second:
            registry = await registry_of([declare(second.url)], mcp)
    assert listings(registry)[0].error is None


@protocols
async def test_cancelled_call_is_cancelled_at_the_server_and_the_session_lives_on(
    loopback: McpSettings, declare: Declare, protocol: str
) -> None:
    async with pool(loopback, protocol) as (server, mcp):
        tools = (await registry_of([declare(server.url)], mcp)).gateway_tools
        async with scheduled([GatewayCall(tools["hang"], "")], CallLimits()):
            await server.until(lambda seen: len(seen.calls) == 1)
        await server.until(lambda seen: seen.cancelled == ["hang"])
        after = await tools["echo"].call({"text": "still here"})
    assert (after, server.counts[OPENINGS[protocol]]) == (CallResult("still here"), 1)


@protocols
async def test_hanging_call_times_out_and_its_siblings_answer(
    loopback: McpSettings, declare: Declare, protocol: str
) -> None:
    async with pool(loopback, protocol) as (server, mcp):
        tools = (await registry_of([declare(server.url)], mcp)).gateway_tools
        wanted = [("echo", '{"text": "1"}'), ("hang", ""), ("fail", '{"message": "no"}'), ("add", '{"a": 1, "b": 2}')]
        calls = [GatewayCall(tools[name], arguments) for name, arguments in wanted]
        async with scheduled(calls, CallLimits(call_timeout_s=1.5)) as results:
            told = [(await result).model_text for result in results]
        await server.until(lambda seen: seen.cancelled == ["hang"])
    timed_out = "The tool call failed: The tool did not answer within 1.5 s."
    assert told == ["1", timed_out, "no", '{"sum":3}']


@protocols
async def test_call_may_take_longer_than_other_requests(loopback: McpSettings, declare: Declare, protocol: str) -> None:
    async with pool(loopback.model_copy(update={"connect_timeout_s": 1.5}), protocol) as (server, mcp):
        hang = (await registry_of([declare(server.url)], mcp)).gateway_tools["hang"]
        async with scheduled([GatewayCall(hang, "")], CallLimits(call_timeout_s=1.8)) as [result]:
            told = (await result).model_text
    assert told == "The tool call failed: The tool did not answer within 1.8 s."


async def test_server_that_does_not_take_the_cancellation_holds_up_nobody(
    loopback: McpSettings, declare: Declare
) -> None:
    faults = {"notifications/cancelled": Fault(hang=True)}
    async with pool(loopback, "legacy", faults=faults) as (server, mcp):
        tools = (await registry_of([declare(server.url)], mcp)).gateway_tools
        async with scheduled([GatewayCall(tools["hang"], "")], CallLimits()):
            await server.until(lambda seen: len(seen.calls) == 1)
        assert await tools["echo"].call({"text": "x"}) == CallResult("x")


@protocols
async def test_idle_session_is_closed(loopback: McpSettings, declare: Declare, protocol: str) -> None:
    async with pool(loopback.model_copy(update={"idle_timeout_s": 0.0}), protocol) as (server, mcp):
        await registry_of([declare(server.url)], mcp)
        while mcp.knows_tools(McpServer(server.url)):  # noqa: ASYNC110 - nobody is told that a session was closed
            await asyncio.sleep(0)
        await server.until(lambda seen: seen.open_requests == 0)
        await registry_of([declare(server.url)], mcp)
    assert server.counts[OPENINGS[protocol]] == 2
    assert server.counts["DELETE"] == (2 if protocol == "legacy" else 0)


async def test_longest_idle_session_makes_room_for_another(loopback: McpSettings) -> None:
    async with pool(loopback.model_copy(update={"max_sessions": 2})) as (server, mcp):
        servers = [McpServer(f"{server.url}?n={n}") for n in range(3)]
        for one in servers:
            await mcp.list_tools(one)
        assert [mcp.knows_tools(one) for one in servers] == [False, True, True]


async def test_no_session_makes_room_while_it_is_used(loopback: McpSettings) -> None:
    async with pool(loopback.model_copy(update={"max_sessions": 1})) as (server, mcp), asyncio.TaskGroup() as tasks:
        using = tasks.create_task(mcp.call_tool(McpServer(server.url), "slow", {}))
        await server.until(lambda seen: len(seen.calls) == 1)
        with pytest.raises(McpServerError, match=r"has 1 MCP sessions in use, its mcp\.max_sessions"):
            await mcp.list_tools(McpServer(f"{server.url}?other"))
        server.release.set()
        assert await using == CallResult("released")


async def test_closing_ends_calls_that_still_run_and_leaves_no_task(loopback: McpSettings) -> None:
    async with asyncio.timeout(5), running_mcp_server() as server, asyncio.TaskGroup() as tasks:
        tasks_before = asyncio.all_tasks()
        async with open_mcp_servers(loopback) as mcp:
            using = tasks.create_task(mcp.call_tool(McpServer(server.url), "hang", {}))
            await server.until(lambda seen: len(seen.calls) == 1)
        result = await using
        await server.until(lambda seen: seen.open_requests == 0)
        left = {task for task in asyncio.all_tasks() - tasks_before - {using} if "attache" in repr(task.get_coro())}
    assert result.error is not None
    assert result.error["message"] == "The MCP server closed the connection before it answered."
    assert left == set()


async def test_server_without_an_event_stream_is_used_all_the_same(loopback: McpSettings, declare: Declare) -> None:
    async with pool(loopback, "legacy", faults={"GET": Fault(status=405)}) as (server, mcp):
        registry = await registry_of([declare(server.url)], mcp)
        assert await registry.gateway_tools["echo"].call({"text": "x"}) == CallResult("x")


async def test_event_stream_that_ends_at_once_is_not_asked_for_without_end(
    loopback: McpSettings, declare: Declare, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp.client.streamable_http.DEFAULT_RECONNECTION_DELAY_MS", 1)
    monkeypatch.setattr("mcp.client.streamable_http.MAX_RECONNECTION_ATTEMPTS", 1000)
    faults = {"GET": Fault(content_type="text/event-stream", body=b": bye\n\n")}
    async with pool(loopback, "legacy", faults=faults) as (server, mcp):
        registry = await registry_of([declare(server.url)], mcp)
        await server.until(lambda seen: seen.counts["GET"] == 16)
        for _ in range(20):
            assert await registry.gateway_tools["echo"].call({"text": "x"}) == CallResult("x")
        assert server.counts["GET"] == 16


@protocols
async def test_redirect_is_not_followed_and_its_target_not_contacted(
    loopback: McpSettings, declare: Declare, protocol: str
) -> None:
    async with running_mcp_server() as inside, pool(loopback, protocol) as (server, mcp):
        for method in ("server/discover", "initialize", "tools/list"):
            server.faults[method] = Fault(status=307, body=inside.url.encode())
        registry = await registry_of([declare(server.url, authorization="secret")], mcp)
    assert listings(registry)[0].error == "The MCP server answered with HTTP status 307."
    assert inside.requests == []


class TestCredentials:
    CANARY = "canary-2f6e1c9b"

    @protocols
    async def test_token_and_headers_reach_the_server_and_only_it(
        self, loopback: McpSettings, declare: Declare, protocol: str
    ) -> None:
        async with pool(loopback, protocol, token=self.CANARY) as (server, mcp), running_mcp_server() as other:
            tools = [
                declare(server.url, "a", authorization=self.CANARY, headers={"X-Team": "blue"}),
                declare(other.url, "b", allowed_tools=["add"]),
            ]
            registry = await registry_of(tools, mcp)
            await registry.gateway_tools["echo"].call({"text": "x"})
        assert {(seen.headers["authorization"], seen.headers["x-team"]) for seen in server.requests} == {
            (f"Bearer {self.CANARY}", "blue")
        }
        assert all("authorization" not in seen.headers and "x-team" not in seen.headers for seen in other.requests)

    async def test_other_credentials_get_a_session_and_a_list_of_their_own(
        self, loopback: McpSettings, declare: Declare
    ) -> None:
        async with pool(loopback, token=self.CANARY) as (server, mcp):
            granted = await registry_of([declare(server.url, authorization=self.CANARY)], mcp)
            refused = await registry_of([declare(server.url, authorization="guess")], mcp)
            anonymous = await registry_of([declare(server.url)], mcp)
        errors = [listings(registry)[0].error for registry in (granted, refused, anonymous)]
        refusal = "The MCP server answered with HTTP status 401."
        assert errors == [None, refusal, refusal]

    def test_no_text_form_shows_a_credential_or_the_url(self) -> None:
        server = McpServer(f"https://h/{self.CANARY}", Credentials({"x-key": self.CANARY}, self.CANARY))
        texts = [
            repr(server),
            str(server),
            f"{server}",
            repr(server.credentials),
            repr([server.credentials]),
            server.key,
        ]
        assert all(self.CANARY not in text for text in texts)

    @protocols
    @pytest.mark.parametrize(
        "fault",
        [
            None,
            Fault(status=500, body=CANARY.encode()),
            Fault(body=CANARY.encode()),
            Fault(content_type="text/event-stream", body=b"event: message\ndata: " + CANARY.encode() + b"\n\n"),
            Fault(error={"code": -32000, "message": f"token {CANARY} is not known", "data": CANARY}),
            Fault(status=307, body=f"http://192.0.2.1/?{CANARY}".encode()),
            Fault(content_type="text/event-stream", body=b": x\n\n", cut_off=True),
        ],
    )
    async def test_credential_is_in_no_log_error_or_text(
        self,
        loopback: McpSettings,
        declare: Declare,
        caplog: pytest.LogCaptureFixture,
        protocol: str,
        fault: Fault | None,
    ) -> None:
        caplog.set_level(logging.DEBUG)
        settings = loopback.model_copy(update={"list_ttl_s": 0.0})
        async with pool(settings, protocol) as (server, mcp):
            tool = declare(f"{server.url}?key={self.CANARY}", authorization=self.CANARY, headers={"X-Key": self.CANARY})
            echo = (await registry_of([tool], mcp)).gateway_tools["echo"]
            if fault is not None:
                server.faults.update({"tools/list": fault, "tools/call": fault})
            texts = [repr(echo), repr(await echo.call({"text": "x"})), repr(await registry_of([tool], mcp))]
        assert all(self.CANARY not in text for text in [*texts, caplog.text])
