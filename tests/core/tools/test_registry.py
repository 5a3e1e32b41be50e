"""Registries built from what real MCP servers offer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from mcp_types import Tool, ToolAnnotations

from attache_core.errors import ClientError
from attache_core.json_codec import Json
from attache_core.testing.mcp_server import BUILTIN_TOOL_NAMES, Fault, McpServerOptions, running_mcp_server
from attache_core.tools.gateway_tool import CallResult
from attache_core.tools.mcp.items import McpListing
from attache_core.tools.mcp.servers import open_mcp_servers
from attache_core.tools.mcp.settings import McpSettings
from attache_core.tools.registry import ToolRegistry
from core.tools.registries import listings, needs_discovery, registry_of

Declare = Callable[..., Json]

EMPTY: Json = {"type": "object", "properties": {}}


def tool(name: str, schema: Json = EMPTY, *, read_only: bool | None = None, description: str | None = None) -> Tool:
    annotations = None if read_only is None else ToolAnnotations(read_only_hint=read_only)
    return Tool(name=name, description=description, input_schema=schema, annotations=annotations)


def only(*tools: Tool, **options: Any) -> McpServerOptions:
    return McpServerOptions(builtin=False, tools=tools, **options)


def names(registry: ToolRegistry) -> list[str]:
    return [function["name"] for function in registry.function_tools]


async def build(settings: McpSettings, tools: Sequence[Json]) -> ToolRegistry:
    async with open_mcp_servers(settings) as mcp:
        return await registry_of(tools, mcp)


async def test_no_tools_make_an_empty_registry(loopback: McpSettings) -> None:
    assert names(await build(loopback, [])) == []


async def test_functions_of_the_client_reach_the_model_as_declared_and_in_order(loopback: McpSettings) -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "array"}}}
    tools: list[Json] = [
        {"type": "function", "name": "full", "description": "d", "parameters": schema, "strict": True},
        {"type": "function", "name": "bare"},
        {"type": "function", "name": "new", "parameters": None, "x_unknown": [1]},
    ]
    registry = await build(loopback, tools)
    assert registry.function_tools == tuple(tools)
    assert (listings(registry), registry.gateway_tools) == ((), {})


async def test_no_server_takes_the_name_of_a_tool_of_the_client(loopback: McpSettings, declare: Declare) -> None:
    own: list[Json] = [
        {"type": "custom", "name": "run", "format": {"type": "text"}},
        {"type": "namespace", "name": "files", "tools": [{"type": "function", "name": "open"}]},
        {"type": "tool_search", "execution": "client"},
        {"type": "shell"},
    ]
    offered = only(tool("run"), tool("open"), tool("files__open"), tool("files"), tool("shell"))
    async with running_mcp_server(offered) as server:
        registry = await build(loopback, [*own, declare(server.url, "disk")])
    assert names(registry) == [
        *("run", "files__open", "tool_search", "shell"),
        *("disk__run", "open", "disk__files__open", "files", "disk__shell"),
    ]
    assert set(registry.gateway_tools) == {"disk__run", "open", "disk__files__open", "files", "disk__shell"}


async def test_mcp_tools_stand_where_their_server_is_declared(loopback: McpSettings, declare: Declare) -> None:
    schema = {
        "type": "object",
        "properties": {"items": {"type": "array", "items": {"$ref": "#/$defs/item"}}},
        "$defs": {"item": {"type": "string"}},
    }
    null: Json = {"type": "object", "properties": {}, "required": None}
    offered = [
        {"name": "sum", "description": "Adds.", "inputSchema": schema, "annotations": {"readOnlyHint": False}},
        {"name": "look", "inputSchema": null, "annotations": {"readOnlyHint": True}},
    ]
    listed = Fault(result={"tools": offered, "resultType": "complete", "ttlMs": 0, "cacheScope": "public"})
    before, after = {"type": "function", "name": "before"}, {"type": "function", "name": "after"}
    async with running_mcp_server(faults={"tools/list": listed}) as server:
        registry = await build(loopback, [before, declare(server.url, "counter"), after])
    assert names(registry) == ["before", "sum", "look", "after"]
    assert registry.function_tools[1:3] == (
        {"type": "function", "name": "sum", "description": "Adds.", "parameters": schema, "strict": False},
        {"type": "function", "name": "look", "description": None, "parameters": EMPTY, "strict": False},
    )
    shown = (
        {"name": "sum", "description": "Adds.", "input_schema": schema, "annotations": {"read_only": False}},
        {"name": "look", "description": None, "input_schema": null, "annotations": {"read_only": True}},
    )
    assert listings(registry) == (McpListing("counter", shown),)


@pytest.mark.parametrize(
    ("allowed", "expected"),
    [
        (None, ["look", "touch", "bare"]),
        ([], []),
        (["touch", "gone"], ["touch"]),
        ({"tool_names": ["bare", "look"]}, ["look", "bare"]),
        ({"read_only": True}, ["look"]),
        ({"read_only": False}, ["touch", "bare"]),
        ({"read_only": True, "tool_names": ["touch", "look"]}, ["look"]),
        ({"read_only": None, "tool_names": None}, ["look", "touch", "bare"]),
        ({}, ["look", "touch", "bare"]),
    ],
)
async def test_allowed_tools_decide_what_is_listed_and_called(
    loopback: McpSettings, declare: Declare, allowed: object, expected: list[str]
) -> None:
    offered = only(tool("look", read_only=True), tool("touch", read_only=False), tool("bare"))
    async with running_mcp_server(offered) as server:
        registry = await build(loopback, [declare(server.url, allowed_tools=allowed)])
    assert names(registry) == [one["name"] for one in listings(registry)[0].tools] == list(registry.gateway_tools)
    assert names(registry) == expected


async def test_names_no_function_may_have_lead_back_to_their_tools(loopback: McpSettings, declare: Declare) -> None:
    odd = ["files.read", "files read", "Ünï", "x" * 100]
    async with running_mcp_server(only(*map(tool, odd))) as server, open_mcp_servers(loopback) as mcp:
        registry = await registry_of([declare(server.url, "fs")], mcp)
        results = [await called.call({}) for called in registry.gateway_tools.values()]
    assert names(registry)[0] == "fs__files_read_54b4a7da"
    assert results == [CallResult(f"{name} {{}}") for name in odd]


@pytest.mark.parametrize("protocol", ["modern", "legacy"])
async def test_same_name_on_two_servers_calls_only_the_server_that_was_meant(
    loopback: McpSettings, declare: Declare, protocol: str
) -> None:
    offered = only(tool("search"), protocol=protocol)
    async with (
        running_mcp_server(offered) as first,
        running_mcp_server(offered) as second,
        open_mcp_servers(loopback) as mcp,
    ):
        function = {"type": "function", "name": "search"}
        registry = await registry_of([function, declare(first.url, "a"), declare(second.url, "b")], mcp)
        result = await registry.gateway_tools["b__search"].call({"q": 1})
    assert names(registry) == ["search", "a__search", "b__search"]
    assert list(registry.gateway_tools) == ["a__search", "b__search"]
    assert (result, first.calls, second.calls) == (CallResult('search {"q":1}'), [], [("search", {"q": 1})])


async def test_tool_that_a_server_lists_twice_is_offered_once(loopback: McpSettings, declare: Declare) -> None:
    async with running_mcp_server(only(tool("a", description="1"), tool("b"), tool("a", description="2"))) as server:
        registry = await build(loopback, [declare(server.url)])
    assert [(one["name"], one["description"]) for one in listings(registry)[0].tools] == [("a", "1"), ("b", None)]


async def test_dead_server_has_an_error_and_the_others_their_tools(
    loopback: McpSettings, declare: Declare, refusing_url: str
) -> None:
    async with running_mcp_server(only(tool("a"))) as server:
        registry = await build(loopback, [declare(refusing_url, "dead"), declare(server.url, "alive")])
    assert listings(registry)[0] == McpListing("dead", error="The MCP server cannot be reached.")
    assert names(registry) == ["a"]


async def test_hanging_server_has_an_error_and_the_others_their_tools(declare: Declare) -> None:
    settings = McpSettings(allow_private_addresses=True, connect_timeout_s=1.5)
    hanging = running_mcp_server(faults={"tools/list": Fault(hang=True)})
    async with hanging as slow, running_mcp_server(only(tool("a"))) as server:
        registry = await build(settings, [declare(slow.url, "slow"), declare(server.url, "alive")])
    assert listings(registry)[0] == McpListing("slow", error="The MCP server did not answer in time.")
    assert names(registry) == ["a"]


async def test_all_pages_of_a_list_are_read(loopback: McpSettings, declare: Declare) -> None:
    async with running_mcp_server(page_size=2) as server:
        registry = await build(loopback, [declare(server.url)])
    assert tuple(names(registry)) == BUILTIN_TOOL_NAMES
    assert server.counts["tools/list"] == (len(BUILTIN_TOOL_NAMES) + 1) // 2


@pytest.mark.parametrize(
    ("limits", "error"),
    [
        ({"max_list_pages": 2}, "The MCP server lists more than 2 pages of tools, the gateway's mcp.max_list_pages."),
        ({"max_listed_tools": 3}, "The MCP server lists more than 3 tools, the gateway's mcp.max_listed_tools."),
    ],
)
async def test_list_without_an_end_is_refused(
    loopback: McpSettings, declare: Declare, limits: Json, error: str
) -> None:
    async with running_mcp_server(page_size=2) as server:
        registry = await build(loopback.model_copy(update=limits), [declare(server.url)])
    assert listings(registry) == (McpListing("demo", error=error),)


async def test_huge_description_of_a_tool_is_refused(loopback: McpSettings, declare: Declare) -> None:
    async with running_mcp_server(only(tool("a"), tool("b", description="x" * 70_000))) as server:
        registry = await build(loopback, [declare(server.url)])
    error = "Tool 'b' is described in more than 65536 bytes, the gateway's mcp.max_tool_bytes."
    assert listings(registry) == (McpListing("demo", error=error),)


async def test_too_many_tools_answer_400_and_name_the_remedy(loopback: McpSettings, declare: Declare) -> None:
    many = only(*[tool(f"t{n}") for n in range(129)])
    async with (
        running_mcp_server(many) as server,
        open_mcp_servers(loopback) as mcp,
    ):
        with pytest.raises(ClientError) as raised:
            await registry_of([declare(server.url)], mcp)
        fitting = await registry_of([declare(server.url, allowed_tools=["t128"])], mcp)
    assert (raised.value.http_status, raised.value.param, raised.value.code) == (400, "tools", "too_many_tools")
    assert raised.value.message == (
        "The request gives the model 129 tools, and at most 128 are possible. "
        "Name those that are needed in `allowed_tools`."
    )
    assert names(fitting) == ["t128"]


async def test_too_many_servers_answer_400_before_any_is_contacted(loopback: McpSettings, declare: Declare) -> None:
    async with running_mcp_server() as server:
        with pytest.raises(ClientError, match="at most 64 MCP servers"):
            await build(loopback, [declare(server.url, f"s{n}") for n in range(65)])
    assert server.requests == []


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"server_label": None}, "tools[1].server_label"),
        ({"server_label": ""}, "tools[1].server_label"),
        ({"server_label": "first"}, "tools"),
        ({"server_url": None}, "tools[1].server_url"),
        ({"require_approval": "sometimes"}, "tools[1].require_approval"),
        ({"require_approval": {"never": {"names": ["a"]}}}, "tools[1].require_approval.never.names"),
        ({"headers": {"x": "a\r\nhost: b"}}, "tools[1].headers.x"),
        ({"headers": {"x y": "a"}}, "tools[1].headers"),
        ({"headers": {"x": 1}}, "tools[1].headers.x"),
        ({"headers": {"Host": "inside"}}, "tools[1].headers"),
        ({"headers": {"Transfer-Encoding": "chunked"}}, "tools[1].headers"),
        ({"headers": ["x"]}, "tools[1].headers"),
        ({"authorization": "a\nb"}, "tools[1].authorization"),
        ({"authorization": 1}, "tools[1].authorization"),
        ({"allowed_tools": "a"}, "tools[1].allowed_tools"),
        ({"allowed_tools": [1]}, "tools[1].allowed_tools[0]"),
        ({"allowed_tools": {"read_only": "yes"}}, "tools[1].allowed_tools.read_only"),
        ({"type": "web_search"}, "tools[1].type"),
        ({"type": None}, "tools[1].type"),
        ({"type": "function"}, "tools[1].name"),
    ],
)
async def test_unusable_declaration_answers_400_and_contacts_nobody(
    loopback: McpSettings, declare: Declare, fields: Json, param: str
) -> None:
    async with running_mcp_server() as server:
        with pytest.raises(ClientError) as raised:
            await build(loopback, [declare(server.url, "first"), {**declare(server.url, "second"), **fields}])
    assert (raised.value.http_status, raised.value.param, server.requests) == (400, param, [])


async def test_discovery_is_needed_until_the_list_is_known(loopback: McpSettings, declare: Declare) -> None:
    async with running_mcp_server() as server, open_mcp_servers(loopback) as mcp:
        tools = [{"type": "function", "name": "f"}, declare(server.url)]
        needed = [needs_discovery(tools[:1], mcp), needs_discovery(tools, mcp)]
        await registry_of(tools, mcp)
        needed += [needs_discovery(tools, mcp), needs_discovery([declare(server.url, authorization="other")], mcp)]
    assert needed == [False, True, False, True]


async def test_what_calls_acquired_is_given_back_at_the_end_of_a_turn_even_if_one_of_them_fails_to(
    caplog: pytest.LogCaptureFixture,
) -> None:
    released: list[str] = []
    secret = "canary" + "-release"  # apart, because a traceback shows the line

    async def release() -> None:
        released.append("x")

    async def fail() -> None:
        raise RuntimeError(secret)

    async with ToolRegistry(releases=(release, fail, release)).serving():
        assert released == []
    assert released == ["x", "x"]
    assert "RuntimeError" in caplog.text
    assert secret not in caplog.text
