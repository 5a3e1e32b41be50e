"""What is made of a server's tools and of declarations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from attache_core.errors import ClientError
from attache_core.json_codec import Json
from attache_core.tools.declarations import AllowedTools, function_tool, mcp_declarations

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


def test_declarations_are_read_by_their_place() -> None:
    tools: list[Json] = [
        {"type": "function", "name": "f"},
        {**MCP, "authorization": "token", "headers": {"X-Team": "blue"}, "allowed_tools": ["a"]},
        {**MCP, "server_label": "t", "allowed_tools": {"read_only": True}},
    ]
    found = mcp_declarations(tools)
    assert [(place, one.server_label, one.server.url) for place, one in found.items()] == [
        (1, "s", "https://h/mcp"),
        (2, "t", "https://h/mcp"),
    ]
    assert found[1].server.credentials.reveal() == {"authorization": "Bearer token", "x-team": "blue"}
    assert found[2].server.credentials.reveal() == {}
    assert [one.allowed for one in found.values()] == [AllowedTools(frozenset({"a"})), AllowedTools(read_only=True)]


@pytest.mark.parametrize("tools", [[], ()])
def test_no_tools_have_no_declarations(tools: Sequence[Json]) -> None:
    assert mcp_declarations(tools) == {}


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
        ([{"type": "mcp", "server_label": "s"}], "tools[0].server_url"),
        ([{"type": "function"}], "tools[0].name"),
        ([{"type": "function", "name": None}], "tools[0].name"),
        ([MCP, MCP], "tools"),
        ([{**MCP, "headers": {"Host": "inside"}}], "tools[0].headers"),
    ],
)
def test_tools_that_nobody_validated_answer_400(tools: Any, param: str) -> None:
    with pytest.raises(ClientError) as raised:
        mcp_declarations(tools)
    assert (raised.value.http_status, raised.value.param) == (400, param)
