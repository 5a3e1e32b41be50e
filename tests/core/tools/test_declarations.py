"""What is made of a server's tools and of declarations."""

from __future__ import annotations

from typing import Any

import pytest

from attache_core.errors import ClientError
from attache_core.json_codec import Json
from attache_core.tools.builtin import builtin_tool_types
from attache_core.tools.function_tool import function_tool
from attache_core.tools.mcp.declaration import ToolFilter, mcp_declaration
from attache_core.tools.mcp.servers import open_mcp_servers
from attache_core.tools.mcp.settings import McpSettings

MCP: Json = {"type": "mcp", "server_label": "s", "server_url": "https://h/mcp", "require_approval": "never"}
EMPTY: Json = {"type": "object", "properties": {}}
DEFINED: Json = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "rows": {"type": "array", "items": {"$ref": "#/$defs/row"}},
        "at": {"anyOf": [{}, {"type": "null"}]},
    },
    "required": ["rows"],
    "additionalProperties": False,
    "$defs": {"row": {"type": "object", "properties": {"cells": {"type": "array", "items": {"type": "number"}}}}},
}


@pytest.mark.parametrize(
    ("schema", "parameters"),
    [
        (DEFINED, DEFINED),
        ({"type": "object"}, {"type": "object"}),
        ({**EMPTY, "required": None}, EMPTY),
        ({**EMPTY, "required": []}, {**EMPTY, "required": []}),
        ({}, EMPTY),
        (None, EMPTY),
        ("object", EMPTY),
    ],
)
def test_schema_of_a_server_reaches_the_model_as_it_is_where_it_is_one(schema: object, parameters: Json) -> None:
    function = function_tool("f", "Does.", schema)
    expected = {"type": "function", "name": "f", "description": "Does.", "parameters": parameters, "strict": False}
    assert function == expected


def test_declaration_is_read_into_a_server_and_what_is_allowed_of_it() -> None:
    one = mcp_declaration({**MCP, "authorization": "token", "headers": {"X-Team": "blue"}, "allowed_tools": ["a"]}, {})
    other = mcp_declaration({**MCP, "server_label": "t", "allowed_tools": {"read_only": True}}, {})
    assert [(each.server_label, each.server.url) for each in (one, other)] == [
        ("s", "https://h/mcp"),
        ("t", "https://h/mcp"),
    ]
    assert one.server.credentials.reveal() == {"authorization": "Bearer token", "x-team": "blue"}
    assert other.server.credentials.reveal() == {}
    assert [one.allowed, other.allowed] == [ToolFilter(frozenset({"a"})), ToolFilter(read_only=True)]


TOOLS: list[Json] = [
    {"name": "read", "annotations": {"read_only": True}},
    {"name": "peek", "annotations": {"read_only": True}},
    {"name": "write", "annotations": {"read_only": False}},
]


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        (None, ["read", "peek", "write"]),
        ("always", ["read", "peek", "write"]),
        ("never", []),
        ({}, ["read", "peek", "write"]),
        ({"never": {}}, ["read", "peek", "write"]),
        ({"never": {"tool_names": []}}, ["read", "peek", "write"]),
        ({"never": {"tool_names": ["read"]}}, ["peek", "write"]),
        ({"never": {"read_only": True}}, ["write"]),
        ({"never": {"read_only": True, "tool_names": ["read", "write"]}}, ["peek", "write"]),
        ({"always": {"tool_names": ["peek"]}}, ["read", "peek", "write"]),
        ({"always": {"tool_names": ["peek"]}, "never": {"read_only": True}}, ["peek", "write"]),
        ({"always": {"read_only": True}, "never": {"tool_names": ["read", "write"]}}, ["read", "peek"]),
    ],
    ids=str,
)
def test_approval_is_needed_for_every_tool_that_is_not_plainly_exempt(given: object, asked: list[str]) -> None:
    rule = mcp_declaration({**MCP, "require_approval": given}, {}).approval
    assert [tool["name"] for tool in TOOLS if rule.needs_approval(tool)] == asked


def test_approval_is_needed_where_a_declaration_does_not_say() -> None:
    declaration = {name: value for name, value in MCP.items() if name != "require_approval"}
    assert mcp_declaration(declaration, {}).approval.needs_approval(TOOLS[0])


@pytest.mark.parametrize(
    ("tools", "param"),
    [
        ("mcp", "tools"),
        ({"type": "mcp"}, "tools"),
        (1, "tools"),
        ([None], "tools[0]"),
        (["mcp"], "tools[0]"),
        ([{}], "tools[0].type"),
        ([{"type": ["mcp"]}], "tools[0].type"),
        ([{"type": "mcp"}], "tools[0].server_label"),
        ([{"type": "mcp", "server_label": "s", "require_approval": "never"}], "tools[0].server_url"),
        ([{"type": "function"}], "tools[0].name"),
        ([{"type": "function", "name": None}], "tools[0].name"),
        ([MCP, MCP], "tools"),
        ([{**MCP, "headers": {"Host": "inside"}}], "tools[0].headers"),
    ],
)
async def test_tools_that_nobody_validated_answer_400(tools: Any, param: str) -> None:
    async with open_mcp_servers(McpSettings()) as mcp:
        with pytest.raises(ClientError) as raised:
            builtin_tool_types(mcp).check(tools)
    assert (raised.value.http_status, raised.value.param) == (400, param)
