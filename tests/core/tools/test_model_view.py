"""What the model is told of past calls and of a tool choice."""

from __future__ import annotations

from typing import Any

import pytest

from attache_core.events.model_events import ModelEvent
from attache_core.json_codec import Json
from attache_core.tools.builtin import BUILTIN_TELLERS
from attache_core.tools.choice import model_tool_choice
from attache_core.tools.gateway_tool import CallMade, CallResult, GatewayTool
from attache_core.tools.history import model_input
from attache_core.tools.mcp.items import call_id_of
from attache_core.tools.registry import ToolRegistry
from attache_core.tools.tool_type import ClientTool, OfferedTool


class NeverCalled(GatewayTool):
    async def call(self, arguments: Json) -> CallResult:
        raise AssertionError(arguments)

    def begun(self, call: CallMade) -> list[ModelEvent]:
        raise AssertionError(call)

    def ended(self, call: CallMade, result: CallResult) -> list[ModelEvent]:
        raise AssertionError(call, result)


def mcp_tool(label: str, name: str) -> OfferedTool:
    return OfferedTool("mcp", label, name, {}, NeverCalled())


def clients(kind: str, name: str, owner: str | None = None, *, deferred: bool = False) -> OfferedTool:
    return OfferedTool(kind, owner, name, {}, ClientTool(), deferred=deferred)


REGISTRY = ToolRegistry(
    tools={
        "a__search": mcp_tool("a", "search"),
        "b__search": mcp_tool("b", "search"),
        "read": mcp_tool("b", "read"),
        "mine": clients("function", "mine"),
        "patch": clients("custom", "patch"),
        "files__open": clients("function", "open", "files"),
        "shell__shell": clients("shell", "shell"),
        "later": clients("function", "later", deferred=True),
    },
    tellers=BUILTIN_TELLERS,
)


def mcp_call(**fields: Any) -> Json:
    item = {"id": "mcp_1f", "type": "mcp_call", "server_label": "b", "name": "search", "arguments": '{"q":1}'}
    return {**item, "status": "completed", "approval_request_id": None, "error": None, "output": "found", **fields}


def told(name: str, output: str, call_id: str = "call_1f", arguments: str = '{"q":1}') -> list[Json]:
    return [
        {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments},
        {"type": "function_call_output", "call_id": call_id, "output": output},
    ]


def test_other_items_pass_as_they_are_and_in_their_order() -> None:
    user = {"role": "user", "content": "hello"}
    call = {"type": "function_call", "call_id": "c", "name": "mine", "arguments": "{}"}
    items = [user, mcp_call(), call]
    assert model_input(items, REGISTRY) == [user, *told("b__search", "found"), call]
    assert model_input(items, REGISTRY)[0] is user


@pytest.mark.parametrize("kind", ["mcp_list_tools", "mcp_approval_request", "mcp_approval_response"])
def test_orchestration_items_are_left_out(kind: str) -> None:
    assert model_input([{"type": kind, "id": "x"}], REGISTRY) == []


@pytest.mark.parametrize(
    ("fields", "output"),
    [
        ({"output": None}, ""),
        ({"output": ""}, ""),
        ({"output": "x", "error": None}, "x"),
        (
            {
                "output": None,
                "error": {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": "missing b"}]},
            },
            "missing b",
        ),
        ({"error": {"type": "mcp_tool_execution_error", "content": []}}, "The tool failed and said nothing."),
        (
            {"error": {"type": "mcp_protocol_error", "code": -32602, "message": "Unknown tool."}},
            "The tool call failed: Unknown tool.",
        ),
        ({"error": "it broke"}, "it broke"),
        ({"error": {"odd": 1}}, '{"odd":1}'),
        ({"error": {"content": [{"type": "image", "n": 1}]}}, '{"type":"image","n":1}'),
    ],
)
def test_output_or_error_becomes_the_output_of_the_call(fields: Json, output: str) -> None:
    assert model_input([mcp_call(**fields)], REGISTRY) == told("b__search", output)


def test_tool_that_is_no_longer_declared_keeps_its_name() -> None:
    assert model_input([mcp_call(server_label="z", name="old")], REGISTRY) == told("old", "found")


def test_tool_of_the_past_is_not_given_the_name_of_another_tool() -> None:
    assert model_input([mcp_call(server_label="z", name="read")], REGISTRY) == told("z__read", "found")


def test_tool_of_the_past_with_an_invalid_name_gets_the_name_it_had() -> None:
    [call, _] = model_input([mcp_call(server_label="fs", name="files.read")], REGISTRY)
    assert call["name"] == "fs__files_read_54b4a7da"


def test_calls_without_an_id_are_told_apart_and_missing_arguments_are_none() -> None:
    items = [mcp_call(id=None, arguments=""), mcp_call(id=None)]
    expected = [*told("b__search", "found", "call_0", "{}"), *told("b__search", "found", "call_1")]
    assert model_input(items, REGISTRY) == expected


def test_call_id_is_the_same_for_the_item_s_whole_life() -> None:
    assert call_id_of("mcp_0d59") == "call_0d59"
    assert call_id_of("0d59") == "call_0d59"


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("auto", "auto"),
        ("none", "none"),
        ("required", "required"),
        (None, None),
        ({"type": "function", "name": "mine"}, {"type": "function", "name": "mine"}),
        ({"type": "mcp", "server_label": "b", "name": "search"}, {"type": "function", "name": "b__search"}),
        ({"type": "mcp", "server_label": "b", "name": "read"}, {"type": "function", "name": "read"}),
        ({"type": "mcp", "server_label": "b"}, "required"),
        ({"type": "mcp", "server_label": "b", "name": None}, "required"),
        ({"type": "mcp", "server_label": "b", "name": "gone"}, "auto"),
        ({"type": "mcp", "server_label": "dead"}, "auto"),
        ({"type": "custom", "name": "patch"}, {"type": "function", "name": "patch"}),
        ({"type": "function", "name": "patch"}, {"type": "function", "name": "patch"}),
        ({"type": "function", "name": "open"}, "auto"),
        ({"type": "function", "name": "open", "namespace": "files"}, {"type": "function", "name": "files__open"}),
        ({"type": "shell"}, {"type": "function", "name": "shell__shell"}),
        ({"type": "apply_patch"}, "auto"),
        ({"type": "function", "name": "later"}, "auto"),
        (
            {
                "type": "allowed_tools",
                "mode": "required",
                "tools": [{"type": "function", "name": "mine"}, {"type": "mcp", "server_label": "b"}],
            },
            {
                "type": "allowed_tools",
                "mode": "required",
                "tools": [
                    {"type": "function", "name": "mine"},
                    {"type": "function", "name": "b__search"},
                    {"type": "function", "name": "read"},
                ],
            },
        ),
        ({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "mcp", "server_label": "dead"}]}, "auto"),
    ],
)
def test_tool_choice_names_what_the_model_knows(choice: object, expected: object) -> None:
    assert model_tool_choice(choice, REGISTRY) == expected
