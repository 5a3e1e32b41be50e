from __future__ import annotations

import pytest

from attache_core.testing.mcp_server import running_mcp_server
from attache_core.tools.mcp.addresses import resolve
from attache_core.tools.mcp.failure import McpServerError
from attache_core.tools.mcp.server import McpServer
from attache_core.tools.mcp.servers import open_mcp_servers
from attache_core.tools.mcp.settings import McpSettings
from core.tools.outbound.resolver import answer_with
from core.tools.outbound.spellings import INSIDE, MALFORMED

REFUSED = "The MCP server's URL is refused: "
NOT_PUBLIC = (
    f"{REFUSED}its host has an address that is not public; "
    "the gateway's setting mcp.allow_private_addresses would allow it."
)
UNRESOLVED = "The MCP server's host name cannot be resolved."


async def test_no_spelling_of_an_address_inside_is_connected_to_by_a_real_call() -> None:
    async with running_mcp_server() as server, open_mcp_servers(McpSettings()) as mcp:
        port = server.url.split(":")[2].partition("/")[0]
        urls = [*INSIDE, *(url for url, _ in MALFORMED), server.url, f"http://localhost:{port}/mcp"]
        for url in [*urls, *(f"http://{host}:{port}/mcp" for host in ("2130706433", "0x7f.1", "[::ffff:127.0.0.1]"))]:
            result = await mcp.call_tool(McpServer(url), "echo", {"text": "x"})
            assert result.error is not None
            assert result.error["message"].startswith(REFUSED) or result.error["message"] == UNRESOLVED, url
    assert server.requests == []


async def test_login_in_a_url_is_refused_and_its_place_named() -> None:
    with pytest.raises(McpServerError) as raised:
        await resolve(McpServer("http://user:hunter2@example.com/mcp"), McpSettings())
    use = "it must not contain a user name or password; use `authorization` or `headers`."
    assert raised.value.message == REFUSED + use


async def test_host_that_is_not_allowed_is_refused_and_the_setting_named() -> None:
    with pytest.raises(McpServerError) as raised:
        await resolve(McpServer("http://8.8.8.8/mcp"), McpSettings(allowed_hosts=("*.example.com",)))
    assert raised.value.message == f"{REFUSED}its host is not in the gateway's setting mcp.allowed_hosts."


async def test_refused_server_is_not_contacted() -> None:
    async with running_mcp_server() as server, open_mcp_servers(McpSettings()) as mcp:
        with pytest.raises(McpServerError) as raised:
            await mcp.list_tools(McpServer(server.url))
    assert (raised.value.message, server.requests) == (NOT_PUBLIC, [])


async def test_name_is_resolved_once_and_connections_go_to_that_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that leads elsewhere the second time gains nothing, and the server sees the name as its host."""
    async with running_mcp_server(protocol="legacy") as server:
        asked = answer_with(monkeypatch, ["127.0.0.1"], ["192.0.2.1"])
        url = server.url.replace("127.0.0.1", "localhost")
        async with open_mcp_servers(McpSettings(allow_private_addresses=True, idle_timeout_s=5)) as mcp:
            await mcp.list_tools(McpServer(url))
            await mcp.call_tool(McpServer(url), "echo", {"text": "x"})
    assert asked == ["localhost"]
    assert {request.headers["host"].partition(":")[0] for request in server.requests} == {"localhost"}


async def test_unreachable_address_of_a_name_gives_way_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_mcp_server() as server:
        answer_with(monkeypatch, ["127.0.0.9", "127.0.0.1"])
        async with open_mcp_servers(McpSettings(allow_private_addresses=True)) as mcp:
            assert await mcp.list_tools(McpServer(server.url.replace("127.0.0.1", "localhost")))
