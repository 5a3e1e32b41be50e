"""MCP servers that the gateway file names, declared by their label alone, on real servers."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from attache_core.errors import ClientError
from attache_core.json_codec import Json
from attache_core.secret import REVEALING
from attache_core.testing.mcp_server import Fault, running_mcp_server
from attache_core.tools.gateway_tool import CallResult
from attache_core.tools.mcp.servers import open_mcp_servers
from attache_core.tools.mcp.settings import McpSettings
from core.tools.registries import listings, registry_of

CANARY = "canary-51d0"
WEATHER: Json = {"type": "mcp", "server_label": "weather", "require_approval": "never"}


def named(url: str, *, settings: Json | None = None, **fields: Any) -> McpSettings:
    """Settings that name one server and, unless `settings` say so, let no client reach a private address."""
    return McpSettings.model_validate({**(settings or {}), "servers": {"weather": {"url": url, **fields}}})


async def test_named_server_is_listed_and_called_with_the_operators_credentials_and_no_others() -> None:
    async with running_mcp_server(token=CANARY) as server:
        settings = named(server.url, authorization=CANARY, headers={"X-Team": "blue"})
        async with open_mcp_servers(settings) as mcp:
            registry = await registry_of([WEATHER], mcp)
            result = await registry.gateway_tools["echo"].call({"text": "x"})
    assert (listings(registry)[0].error, result) == (None, CallResult("x"))
    assert {(seen.headers["authorization"], seen.headers["x-team"]) for seen in server.requests} == {
        (f"Bearer {CANARY}", "blue")
    }


async def test_named_server_may_be_where_no_client_may_lead_and_a_client_gains_nothing_by_it() -> None:
    """A session with it is never lent to a declaration by URL, so that the policy holds for that one still."""
    settings = {"allowed_hosts": ["mcp.example.com"], "allowed_schemes": ["https"]}
    theirs = {**WEATHER, "server_label": "theirs"}
    async with running_mcp_server() as server:
        async with open_mcp_servers(named(server.url, settings=settings)) as mcp:
            ours = await registry_of([WEATHER], mcp)
            stolen = await registry_of([{**theirs, "server_url": server.url}], mcp)
        async with open_mcp_servers(named(server.url)) as mcp:
            await registry_of([WEATHER], mcp)
            private = await registry_of([{**theirs, "server_url": server.url}], mcp)
    assert listings(ours)[0].error is None
    refused = "The MCP server's URL is refused: its scheme is not in the gateway's setting mcp.allowed_schemes."
    assert listings(stolen)[0].error == refused
    assert "mcp.allow_private_addresses" in (listings(private)[0].error or "")


async def test_redirect_of_a_named_server_is_not_followed_and_its_target_not_contacted() -> None:
    async with running_mcp_server() as inside, running_mcp_server(protocol="legacy") as server:
        server.faults["initialize"] = Fault(status=307, body=inside.url.encode())
        async with open_mcp_servers(named(server.url, authorization=CANARY)) as mcp:
            registry = await registry_of([WEATHER], mcp)
    assert listings(registry)[0].error == "The MCP server answered with HTTP status 307."
    assert inside.requests == []


@pytest.mark.parametrize(
    ("operators", "clients", "offered"),
    [
        (["add", "echo"], None, {"add", "echo"}),
        (["add", "echo"], ["echo", "fail"], {"echo"}),
        (["add", "fail"], {"read_only": True}, {"add"}),
        (["add", "fail"], {"tool_names": ["fail"], "read_only": True}, set()),
        ([], None, set()),
        (None, ["echo"], {"echo"}),
    ],
)
async def test_client_chooses_among_the_tools_that_the_operator_allows(
    operators: list[str] | None, clients: object, offered: set[str]
) -> None:
    async with running_mcp_server() as server, open_mcp_servers(named(server.url, allowed_tools=operators)) as mcp:
        registry = await registry_of([{**WEATHER, "allowed_tools": clients}], mcp)
    assert {tool["name"] for tool in listings(registry)[0].tools} == set(registry.gateway_tools) == offered


@pytest.mark.parametrize(
    ("operators", "clients", "told"),
    [
        (None, None, "The sum of two numbers."),
        ("Numbers.", None, "weather: Numbers.\n\nThe sum of two numbers."),
        (None, "Mine.", "weather: Mine.\n\nThe sum of two numbers."),
        ("Numbers.", "Mine.", "weather: Mine.\n\nThe sum of two numbers."),
        ("", "", "The sum of two numbers."),
    ],
)
async def test_description_of_a_server_is_told_with_its_first_tool_and_is_not_part_of_the_list(
    operators: str | None, clients: str | None, told: str
) -> None:
    async with running_mcp_server() as server, open_mcp_servers(named(server.url, description=operators)) as mcp:
        tool = {**WEATHER, "server_description": clients, "allowed_tools": ["add", "echo"]}
        registry = await registry_of([tool], mcp)
    assert [function["description"] for function in registry.function_tools] == [told, "Says what it is told."]
    assert listings(registry)[0].tools[0]["description"] == "The sum of two numbers."


async def test_tool_loop_refuses_what_a_request_may_not_use_whoever_validated_it() -> None:
    async with open_mcp_servers(named("http://h", settings={"allow_request_servers": False})) as mcp:
        for tool in ({**WEATHER, "server_label": "x", "server_url": "http://h"}, {**WEATHER, "authorization": "x"}):
            with pytest.raises(ClientError):
                await registry_of([tool], mcp)


def test_nothing_of_a_named_server_is_printed_or_dumped_but_for_the_gateways_own_processes() -> None:
    url = f"https://h/{CANARY}"
    settings = named(url, authorization=CANARY, headers={"x-key": CANARY}, allowed_tools=["a"])
    shown = [repr(settings), str(settings.model_dump()), settings.model_dump_json()]
    assert [text for text in shown if CANARY in text] == []
    assert McpSettings.model_validate_json(settings.model_dump_json(context={REVEALING: True})) == settings


@pytest.mark.parametrize(
    "value",
    [
        "canary",
        {"url": "canary"},
        {"url": "ftp://canary"},
        {"url": "https://me:canary@h/"},
        {"url": ["canary"]},
        {"url": "https://h", "authorization": ["canary"]},
        {"url": "https://h", "authorization": "can\nary"},
        {"url": "https://h", "headers": "canary"},
        {"url": "https://h", "headers": {"canary": 1}},
        {"url": "https://h", "headers": {"x y": "canary"}},
        {"url": "https://h", "headers": {"Host": "canary"}},
    ],
)
def test_named_server_that_cannot_be_is_refused_without_showing_what_it_is(value: object) -> None:
    with pytest.raises(ValidationError) as raised:
        McpSettings.model_validate({"servers": {"weather": value}})
    assert [error["type"] for error in raised.value.errors()] == ["value_error"]
    assert all("canary" not in error["msg"] for error in raised.value.errors())
