"""Calls of the tools that a client executes: from the function that the model called to the public item, and back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.responses import (
    ResponseApplyPatchToolCall,
    ResponseCustomToolCall,
    ResponseFunctionShellToolCall,
    ResponseToolSearchCall,
)
from openai.types.responses.response_output_item import LocalShellCall
from pydantic import BaseModel

from attache_core.errors import ClientError
from attache_core.events.model_events import Delta, ItemAdded, ItemDone, ItemEvent, ModelEvent
from attache_core.json_codec import Json, decode, encode
from attache_core.tools.builtin import builtin_tool_types
from attache_core.tools.client.additional_tools import with_additional_tools
from attache_core.tools.client.tool_search import LoadedTools, with_loaded_tools
from attache_core.tools.history import model_input
from attache_core.tools.mcp.servers import McpServers, open_mcp_servers
from attache_core.tools.mcp.settings import McpSettings
from attache_core.tools.registry import ToolRegistry, build_registry
from attache_core.turn.round_view import RoundView
from attache_core.types.tools import MAX_TOOLS

FUNCTION: Json = {"type": "function", "name": "add", "description": "Adds.", "parameters": {"type": "object"}}
GRAMMAR: Json = {"type": "grammar", "syntax": "lark", "definition": 'start: "OK"'}
CUSTOM: Json = {"type": "custom", "name": "echo", "description": "Says.", "format": GRAMMAR}
NAMESPACE: Json = {"type": "namespace", "name": "files", "description": "Of files.", "tools": [FUNCTION, CUSTOM]}
SEARCH: Json = {"type": "tool_search", "execution": "client"}


@pytest.fixture
async def mcp() -> AsyncIterator[McpServers]:
    async with open_mcp_servers(McpSettings()) as servers:
        yield servers


async def registry_of(mcp: McpServers, *tools: Json) -> ToolRegistry:
    return await build_registry(list(tools), builtin_tool_types(mcp))


def spoken(registry: ToolRegistry, name: str, arguments: str, *, cut: int = 7, status: str = "completed") -> list[Any]:
    """What the client sees of one call, its arguments said in pieces."""
    view = RoundView(registry.tools)
    call: Json = {"type": "function_call", "status": "in_progress", "arguments": "", "call_id": "c", "name": name}
    said: list[ModelEvent] = [ItemAdded("k", call)]
    said += [Delta("k", None, "arguments", arguments[at : at + cut]) for at in range(0, len(arguments), cut)]
    said.append(ItemDone("k", {**call, "status": status, "arguments": arguments}))
    shown = [event for each in said for event in view.feed(each)]
    assert view.client_called
    return shown


def texts(shown: Sequence[ModelEvent]) -> list[str]:
    return [event.text for event in shown if isinstance(event, Delta)]


def kinds(shown: Sequence[ModelEvent]) -> list[str]:
    return [event.type if isinstance(event, ItemEvent) else type(event).__name__ for event in shown]


async def test_custom_tool_is_a_function_with_one_text_and_its_grammar_is_told(mcp: McpServers) -> None:
    registry = await registry_of(mcp, CUSTOM)

    assert registry.function_tools == (
        {
            "type": "function",
            "name": "echo",
            "description": 'Says.\n\nThe input must follow this lark grammar:\nstart: "OK"',
            "parameters": {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]},
            "strict": False,
        },
    )


async def test_custom_call_streams_its_input_out_of_the_arguments(mcp: McpServers) -> None:
    shown = spoken(await registry_of(mcp, CUSTOM), "echo", encode({"input": 'a "b"\n'}).decode(), cut=4)

    item = {"type": "custom_tool_call", "status": "in_progress", "call_id": "c", "input": "", "name": "echo"}
    assert shown[0] == ItemAdded("k", item)
    assert shown[-1] == ItemDone("k", {**item, "status": "completed", "input": 'a "b"\n'})
    assert len(texts(shown)) > 1
    assert "".join(texts(shown)) == 'a "b"\n'
    ResponseCustomToolCall.model_validate({"id": "ctc_1", **shown[-1].item})


@settings(max_examples=200, deadline=None)
@given(
    st.text(st.characters(), max_size=40) | st.text(st.sampled_from('{}":\\ input\n'), max_size=30), st.integers(1, 9)
)
async def test_any_input_survives_however_its_arguments_are_cut(text: str, cut: int) -> None:
    async with open_mcp_servers(McpSettings()) as mcp:
        registry = await registry_of(mcp, CUSTOM)
    for arguments in (encode({"input": text}).decode(), text):
        shown = spoken(registry, "echo", arguments, cut=cut)
        assert "".join(texts(shown)) == shown[-1].item["input"]
    assert spoken(registry, "echo", encode({"input": text}).decode(), cut=cut)[-1].item["input"] == text


async def test_members_of_a_namespace_have_names_of_their_own_and_lead_back(mcp: McpServers) -> None:
    registry = await registry_of(mcp, FUNCTION, NAMESPACE)

    told = [(tool["name"], tool["description"].splitlines()[0]) for tool in registry.function_tools]
    assert told == [("add", "Adds."), ("files__add", "files: Of files."), ("files__echo", "Says.")]
    [own] = [event for event in spoken(registry, "add", "{}") if isinstance(event, ItemDone)]
    call = {"type": "function_call", "status": "completed", "arguments": "{}", "call_id": "c", "name": "add"}
    assert own.item == call
    shown = spoken(registry, "files__add", '{"a": [1, 2]}')
    assert [shown[0].item["namespace"], shown[-1].item] == [
        "files",
        {**call, "arguments": '{"a": [1, 2]}', "namespace": "files"},
    ]
    assert "".join(texts(shown)) == '{"a": [1, 2]}'
    custom = spoken(registry, "files__echo", '{"input":"x"}')[-1].item
    assert (custom["type"], custom["name"], custom["namespace"], custom["input"]) == (
        "custom_tool_call",
        "echo",
        "files",
        "x",
    )


async def test_long_names_of_a_namespace_are_valid_and_lead_back(mcp: McpServers) -> None:
    members = [{**FUNCTION, "name": name * 60} for name in "ab"]
    registry = await registry_of(mcp, {**NAMESPACE, "name": "n" * 60, "tools": members})

    assert [len(name) for name in registry.tools] == [64, 64]
    assert [spoken(registry, name, "{}")[-1].item["name"] for name in registry.tools] == ["a" * 60, "b" * 60]


ACTIONS: list[tuple[str, Json, type[BaseModel], Json]] = [
    (
        "shell",
        {"commands": ["ls", "pwd"], "timeout_ms": 1000},
        ResponseFunctionShellToolCall,
        {
            "type": "shell_call",
            "action": {"commands": ["ls", "pwd"], "max_output_length": None, "timeout_ms": 1000},
        },
    ),
    ("shell", {"commands": "ls", "timeout_ms": "soon"}, ResponseFunctionShellToolCall,
     {"type": "shell_call", "action": {"commands": ["ls"], "max_output_length": None, "timeout_ms": None}}),
    ("local_shell", {"command": ["ls", "-l"], "env": {"A": "b", "C": 1}, "working_directory": "/w"}, LocalShellCall,
     {"type": "local_shell_call", "action": {"type": "exec", "command": ["ls", "-l"], "env": {"A": "b"},
                                             "timeout_ms": None, "user": None, "working_directory": "/w"}}),
    ("apply_patch", {"type": "create_file", "path": "a", "diff": "+x"}, ResponseApplyPatchToolCall,
     {"type": "apply_patch_call", "operation": {"type": "create_file", "path": "a", "diff": "+x"}}),
    ("apply_patch", {"type": "delete_file", "path": "a", "diff": "+x"}, ResponseApplyPatchToolCall,
     {"type": "apply_patch_call", "operation": {"type": "delete_file", "path": "a"}}),
    ("tool_search", {"query": "tea"}, ResponseToolSearchCall,
     {"type": "tool_search_call", "arguments": {"query": "tea"}, "execution": "client"}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments", "model", "expected"), ACTIONS)
async def test_action_comes_whole_in_the_shape_of_its_type(
    mcp: McpServers, name: str, arguments: Json, model: type[BaseModel], expected: Json
) -> None:
    registry = await registry_of(mcp, {**SEARCH} if name == "tool_search" else {"type": name})
    shown = spoken(registry, name, encode(arguments).decode())

    nobody = {"caller": None, "created_by": None} if name in ("shell", "apply_patch") else {}
    place = {"environment": {"type": "local"}} if name == "shell" else {}
    assert shown[-1].item == {**expected, **nobody, **place, "status": "completed", "call_id": "c"}
    assert shown[0].item["status"] == "in_progress"
    for event in (shown[0], shown[-1]):
        model.model_validate({"id": "x_1", **event.item})


@pytest.mark.parametrize("name", ["shell", "local_shell", "apply_patch", "tool_search"])
@pytest.mark.parametrize("arguments", ["", "{'a': 1", "[1]", "7", '{"type": ["x"], "commands": {}, "path": 1}'])
async def test_action_has_its_shape_whatever_the_model_wrote(mcp: McpServers, name: str, arguments: str) -> None:
    models = {each[0]: each[2] for each in ACTIONS}
    registry = await registry_of(mcp, {**SEARCH} if name == "tool_search" else {"type": name})

    models[name].model_validate({"id": "x_1", **spoken(registry, name, arguments)[-1].item})


@pytest.mark.parametrize("name", ["shell", "local_shell", "apply_patch", "tool_search"])
async def test_action_that_was_cut_off_is_not_shown(mcp: McpServers, name: str) -> None:
    registry = await registry_of(mcp, {**SEARCH} if name == "tool_search" else {"type": name})

    assert spoken(registry, name, '{"commands": ["rm -r', status="incomplete") == []


async def test_commands_of_the_shell_are_streamed_one_after_the_other(mcp: McpServers) -> None:
    shown = spoken(await registry_of(mcp, {"type": "shell"}), "shell", '{"commands": ["ls", "pwd"]}')

    prefix = "response.shell_call_command"
    command = [f"{prefix}.added", f"{prefix}.delta", f"{prefix}.done"]
    assert kinds(shown) == ["ItemAdded", *command, *command, "ItemDone"]
    assert shown[0].item["action"]["commands"] == []
    assert shown[6].data == {"command": "pwd", "command_index": 1}


async def test_search_begins_with_no_arguments(mcp: McpServers) -> None:
    shown = spoken(await registry_of(mcp, SEARCH), "tool_search", '{"query": "tea"}')

    assert kinds(shown) == ["ItemAdded", "ItemDone"]
    assert shown[0].item["arguments"] == {}


@pytest.mark.parametrize("name", ["echo", "shell", "tool_search"])
async def test_call_of_a_name_that_is_not_declared_is_a_function_call(mcp: McpServers, name: str) -> None:
    shown = spoken(await registry_of(mcp, FUNCTION), name, "{}")

    assert (shown[-1].item["type"], shown[-1].item["name"]) == ("function_call", name)


PAST: list[Json] = [
    {"type": "custom_tool_call", "id": "ctc_1", "call_id": "a", "name": "echo", "input": 'x "y"'},
    {"type": "custom_tool_call_output", "call_id": "a", "output": [{"type": "input_text", "text": "z"}]},
    {"type": "function_call", "call_id": "b", "name": "add", "namespace": "files", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "b", "output": "3"},
    {"type": "custom_tool_call", "call_id": "c", "name": "echo", "namespace": "files", "input": ""},
    {"type": "custom_tool_call_output", "call_id": "c", "output": "z"},
    {"type": "shell_call", "call_id": "d", "action": {"commands": ["ls"]}, "status": "completed"},
    {"type": "shell_call_output", "call_id": "d", "output": [{"stdout": "a"}]},
    {"type": "tool_search_call", "call_id": "e", "arguments": {"query": "tea"}, "execution": "client"},
    {"type": "tool_search_output", "call_id": "e", "tools": [FUNCTION, {**NAMESPACE, "tools": [FUNCTION]}]},
]


async def test_calls_of_the_past_are_told_under_the_names_that_the_model_knows(mcp: McpServers) -> None:
    registry = await registry_of(mcp, FUNCTION, CUSTOM, NAMESPACE, {"type": "shell"}, SEARCH)
    told = model_input(PAST, registry)

    calls = [(item["name"], decode(item["arguments"])) for item in told if item["type"] == "function_call"]
    assert calls == [
        ("echo", {"input": 'x "y"'}),
        ("files__add", {}),
        ("files__echo", {"input": ""}),
        ("shell", {"commands": ["ls"]}),
        ("tool_search", {"query": "tea"}),
    ]
    assert {item["type"] for item in told} == {"function_call", "function_call_output"}
    assert [item["call_id"] for item in told] == [item["call_id"] for item in PAST]
    assert decode(told[-1]["output"]) == {
        "tools": [{"name": "add", "description": "Adds."}, {"name": "files__add", "description": "Adds."}]
    }


async def test_what_is_no_longer_declared_is_not_mistaken_for_a_tool_of_the_request(mcp: McpServers) -> None:
    registry = await registry_of(mcp, {**FUNCTION, "name": "echo"}, {**FUNCTION, "name": "shell"})
    told = model_input(PAST[:8], registry)

    assert [item["name"] for item in told if "name" in item] == [
        "custom__echo",
        "files__add",
        "files__echo",
        "shell__shell",
    ]


LATER: Json = {**FUNCTION, "name": "later", "defer_loading": True}


def found(*tools: Json) -> Json:
    return {"type": "tool_search_output", "call_id": "c", "tools": list(tools)}


async def test_deferred_tool_is_told_only_once_it_was_found(mcp: McpServers) -> None:
    now = {**FUNCTION, "name": "later"}
    for history, told in (([], ["tool_search"]), ([found(LATER)], ["tool_search", "later"])):
        registry = await registry_of(mcp, *with_loaded_tools([SEARCH, LATER], history).tools)
        assert [tool["name"] for tool in registry.function_tools] == told
        assert "later" in registry.tools
    new = {**LATER, "description": "New."}
    assert with_loaded_tools([], [found(LATER), found(new)]) == LoadedTools([{**now, "description": "New."}], (0,))
    assert with_loaded_tools([LATER], []) == LoadedTools([now], ())


def added(*tools: Json) -> Json:
    return {"type": "additional_tools", "role": "developer", "tools": list(tools)}


async def test_tools_that_an_item_adds_are_as_if_declared_and_the_item_is_not_told(mcp: McpServers) -> None:
    history = [
        added(SEARCH, LATER, CUSTOM),
        {"role": "user", "content": "Hi"},
        added({**CUSTOM, "description": "New."}),
    ]
    tools = with_additional_tools([FUNCTION], history)
    registry = await registry_of(mcp, *with_loaded_tools(tools, history).tools)

    assert tools == [FUNCTION, SEARCH, LATER, {**CUSTOM, "description": "New."}]
    assert [tool["name"] for tool in registry.function_tools] == [FUNCTION["name"], "tool_search", CUSTOM["name"]]
    assert model_input(history, registry) == history[1:2]


async def test_tool_that_an_item_adds_under_a_declared_name_is_the_declared_one() -> None:
    other = {"type": "custom", "name": FUNCTION["name"]}
    assert with_additional_tools([FUNCTION], [added({**FUNCTION, "description": "Other."}, other)]) == [FUNCTION]


async def test_items_add_no_more_tools_than_a_request_may_declare() -> None:
    def numbered(*numbers: int) -> list[Json]:
        return [{**FUNCTION, "name": f"f{number}"} for number in numbers]

    history = [added(*numbered(*range(100))), added(*numbered(*range(50, MAX_TOOLS - 1)))]
    assert len(with_additional_tools([FUNCTION], history)) == MAX_TOOLS
    with pytest.raises(ClientError, match="At most 128") as raised:
        with_additional_tools([FUNCTION], [*history, added(*numbered(MAX_TOOLS))])
    assert (raised.value.http_status, raised.value.code, raised.value.param) == (400, "too_many_tools", "input")


@pytest.mark.parametrize("name", [[], {}, None, 1])
async def test_name_of_a_tool_that_has_none_may_be_anything(name: object) -> None:
    patch = {"type": "apply_patch", "name": name}
    assert with_additional_tools([patch], [added(patch)]) == [patch]
    assert with_additional_tools([], [added(patch, {"type": "apply_patch"})]) == [{"type": "apply_patch"}]
    assert with_loaded_tools([patch], [found(LATER)]).tools[:1] == [patch]


async def test_deferred_namespace_is_loaded_with_its_members(mcp: McpServers) -> None:
    deferred = {**NAMESPACE, "tools": [{**FUNCTION, "defer_loading": True}, CUSTOM]}
    registry = await registry_of(mcp, SEARCH, deferred)
    loaded = await registry_of(mcp, *with_loaded_tools([SEARCH, deferred], [found(deferred)]).tools)

    assert [tool["name"] for tool in registry.function_tools] == ["tool_search", "files__echo"]
    assert [tool["name"] for tool in loaded.function_tools] == ["tool_search", "files__add", "files__echo"]


async def test_members_of_a_namespace_that_were_found_one_after_the_other_can_all_be_called(mcp: McpServers) -> None:
    histories = [found({**NAMESPACE, "tools": [FUNCTION]}), found({**NAMESPACE, "tools": [CUSTOM]})]
    registry = await registry_of(mcp, *with_loaded_tools([SEARCH], histories).tools)

    assert [tool["name"] for tool in registry.function_tools] == ["tool_search", "files__add", "files__echo"]


async def test_what_was_found_longest_ago_is_deferred_again_where_there_are_too_many_tools(mcp: McpServers) -> None:
    old = [{**FUNCTION, "name": f"old{number}", "defer_loading": True} for number in range(140)]
    members = [{**FUNCTION, "name": f"m{number}"} for number in range(40)]
    history = [found(*old), found({**NAMESPACE, "tools": members}), found(old[7])]
    loaded = with_loaded_tools([SEARCH, FUNCTION, *old[:50]], history)
    registry = await build_registry(loaded.tools, builtin_tool_types(mcp), loaded.found)

    told = [tool["name"] for tool in registry.function_tools]
    kept = ["old7", *(f"old{number}" for number in range(55, 140))]
    assert told == ["tool_search", "add", *kept, *(f"files__m{number}" for number in range(40))]
    assert {f"old{number}" for number in range(140)} <= set(registry.tools)


async def test_tools_that_were_declared_are_never_deferred_to_make_room(mcp: McpServers) -> None:
    many = [{**FUNCTION, "name": f"f{number}"} for number in range(128)]
    loaded = with_loaded_tools([SEARCH, *many], [found(many[0], LATER)])
    with pytest.raises(ClientError) as raised:
        await build_registry(loaded.tools, builtin_tool_types(mcp), loaded.found)
    assert (raised.value.code, raised.value.message.partition(",")[0]) == (
        "too_many_tools",
        "The request gives the model 129 tools",
    )


async def test_tools_found_under_one_name_are_one_tool_the_last_or_the_declared_one(mcp: McpServers) -> None:
    function, custom = {**FUNCTION, "name": "same"}, {**CUSTOM, "name": "same"}
    history = [found(function), found(custom)]
    assert with_loaded_tools([SEARCH], history) == LoadedTools([SEARCH, custom], (1,))
    declared = with_loaded_tools([SEARCH, function], history)
    assert declared == LoadedTools([SEARCH, function], ())
    await build_registry(declared.tools, builtin_tool_types(mcp), declared.found)


async def test_search_with_arguments_too_deep_to_be_written_has_none(mcp: McpServers) -> None:
    deep = '{"query": ' + "[" * 1000 + "]" * 1000 + "}"
    assert spoken(await registry_of(mcp, SEARCH), "tool_search", deep)[-1].item["arguments"] == {}
