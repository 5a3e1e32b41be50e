from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from attache_core.testing.mcp_server import running_mcp_server
from attache_core.tools.mcp.addresses import Endpoint, is_public, resolve
from attache_core.tools.mcp.failure import McpServerError
from attache_core.tools.mcp.server import McpServer
from attache_core.tools.mcp.servers import open_mcp_servers
from attache_core.tools.mcp.settings import McpSettings

NOT_PUBLIC = (
    "The MCP server's URL is refused: its host has an address that is not public; "
    "the gateway's setting mcp.allow_private_addresses would allow it."
)
USERINFO = "it must not contain a user name or password; use `authorization` or `headers`"
INVALID = "The MCP server's URL is refused: it is not a valid URL."
UNRESOLVED = "The MCP server's host name cannot be resolved."

INSIDE = [
    "http://127.0.0.1/mcp",
    "http://127.1/mcp",
    "http://127.0.0.2:8080/mcp",
    "http://2130706433/mcp",
    "http://0x7f000001/mcp",
    "http://0x7f.0.0.1/mcp",
    "http://0177.0.0.1/mcp",
    "http://017700000001/mcp",
    "http://127.0x0.0.1/mcp",
    "http://127。0。0。1/mcp",
    "http://\uff11\uff12\uff17.0.0.1/mcp",
    "http://localhost/mcp",
    "http://LOCALHOST/mcp",
    "http://[::1]/mcp",
    "http://[0:0:0:0:0:0:0:1]/mcp",
    "http://[::]/mcp",
    "http://[::ffff:127.0.0.1]/mcp",
    "http://[::ffff:7f00:1]/mcp",
    "http://[0:0:0:0:0:ffff:7f00:0001]/mcp",
    "http://[::ffff:8.8.8.8]/mcp",
    "http://[::127.0.0.1]/mcp",
    "http://[64:ff9b::7f00:1]/mcp",
    "http://[64:ff9b:1::a00:1]/mcp",
    "http://[2002:7f00:1::]/mcp",
    "http://[2001:0:7f00:1::]/mcp",
    "http://[fe80::1]/mcp",
    "http://[fec0::1]/mcp",
    "http://[fc00::1]/mcp",
    "http://[fd00:ec2::254]/mcp",
    "http://[ff02::1]/mcp",
    "http://0.0.0.0/mcp",
    "http://0/mcp",
    "http://10.0.0.1/mcp",
    "http://100.64.0.1/mcp",
    "http://100.100.100.200/latest/meta-data",
    "http://168.63.129.16/metadata",
    "http://169.254.169.254/latest/meta-data/",
    "http://0xa9fea9fe/latest/meta-data/",
    "http://172.16.0.1/mcp",
    "http://192.168.0.1/mcp",
    "https://192.168.0.1:443/mcp",
    "http://192.0.0.192/opc/v2",
    "http://198.18.0.1/mcp",
    "http://203.0.113.1/mcp",
    "http://224.0.0.1/mcp",
    "http://240.0.0.1/mcp",
    "http://255.255.255.255/mcp",
]

MALFORMED = [
    ("ftp://example.com/mcp", "it must be an absolute http or https URL"),
    ("file:///etc/passwd", "it must be an absolute http or https URL"),
    ("gopher://127.0.0.1/", "it must be an absolute http or https URL"),
    ("example.com/mcp", "it must be an absolute http or https URL"),
    ("//127.0.0.1/mcp", "it must be an absolute http or https URL"),
    ("http:///mcp", "it must be an absolute http or https URL"),
    (
        "http://user:secret@example.com/mcp",
        USERINFO,
    ),
    (
        "http://example.com\\@127.0.0.1/mcp",
        USERINFO,
    ),
    ("http://①②⑦.0.0.1/mcp", "it is not a valid URL"),
    ("http://127.0.0.1\t/mcp", "it is not a valid URL"),
    ("http://127.0.0.1\r\nhost: x/mcp", "it is not a valid URL"),
    ("http://127.0.0.1:99999/mcp", "its port must be between 1 and 65535"),
    ("http://127.0.0.1:0/mcp", "its port must be between 1 and 65535"),
    ("http://[::1/mcp", "it is not a valid URL"),
]


async def refusal(url: str) -> str:
    with pytest.raises(McpServerError) as raised:
        await resolve(url, allow_private=False)
    return raised.value.message


@pytest.mark.parametrize("url", INSIDE)
async def test_url_that_leads_inside_is_refused_and_the_setting_named(url: str) -> None:
    assert await refusal(url) in (NOT_PUBLIC, UNRESOLVED, INVALID)


@pytest.mark.parametrize(("url", "reason"), MALFORMED)
async def test_url_that_is_none_of_ours_is_refused(url: str, reason: str) -> None:
    assert await refusal(url) == f"The MCP server's URL is refused: {reason}."


@pytest.mark.parametrize("url", ["http://8.8.8.8/mcp", "https://[2606:4700:4700::1111]:8443/mcp"])
async def test_public_address_is_resolved_to_itself(url: str) -> None:
    host, port = ("8.8.8.8", 80) if "8.8.8.8" in url else ("2606:4700:4700::1111", 8443)
    assert await resolve(url, allow_private=False) == Endpoint(host, port, (host,))


async def test_private_address_is_allowed_where_the_operator_says_so() -> None:
    assert await resolve("http://127.0.0.1:81/x", allow_private=True) == Endpoint("127.0.0.1", 81, ("127.0.0.1",))


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "2a00:1450:4001:800::200e"])
def test_public_address_is_public(address: str) -> None:
    assert is_public(address)


async def test_refused_server_is_not_contacted() -> None:
    async with running_mcp_server() as server, open_mcp_servers(McpSettings()) as mcp:
        with pytest.raises(McpServerError) as raised:
            await mcp.list_tools(McpServer(server.url))
    assert (raised.value.message, server.requests) == (NOT_PUBLIC, [])


async def test_name_with_one_private_address_among_public_ones_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    answer_with(monkeypatch, ["8.8.8.8"], ["8.8.8.8", "10.0.0.1"])
    assert (await resolve("http://mixed.test/", allow_private=False)).addresses == ("8.8.8.8",)
    assert await refusal("http://mixed.test/") == NOT_PUBLIC


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


def answer_with(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """Let the running loop's resolver give these answers to names, one after the other; returns the names asked for."""
    loop = asyncio.get_running_loop()
    real, left, asked = loop.getaddrinfo, list(answers), list[str]()

    async def getaddrinfo(host: Any, port: Any, **options: Any) -> Any:
        if host[:1].isdigit():
            return await real(host, port, **options)
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in left.pop(0)]

    monkeypatch.setattr(loop, "getaddrinfo", getaddrinfo)
    return asked
