"""Input items: what is taken as it is, and what is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args, get_type_hints

import pytest
from openai.types.responses import ResponseInputItemParam

from attache_core.json_codec import Json
from attache_core.types.items import ITEM_TYPES, STATUSES, is_reference

Answer = Callable[..., dict[str, Any] | None]

ROLES = "'assistant', 'system', 'developer', and 'user'"
CONTENT = "one of an array of objects or string"


def refusal(code: str, param: str, message: str) -> dict[str, Any]:
    """The whole answer to an item that cannot be taken."""
    return {"status": 400, "message": message, "type": "invalid_request_error", "param": param, "code": code}


def wrong_type(param: str, expected: str, got: str) -> dict[str, Any]:
    """The answer to a value of the wrong type."""
    return refusal("invalid_type", param, f"Invalid type for '{param}': expected {expected}, but got {got} instead.")


def wrong_value(param: str, value: str, supported: str) -> dict[str, Any]:
    """The answer to a value that is none of those supported."""
    return refusal("invalid_value", param, f"Invalid value: '{value}'. Supported values are: {supported}.")


def missing(param: str) -> dict[str, Any]:
    """The answer to a field that is not there."""
    return refusal("missing_required_parameter", param, f"Missing required parameter: '{param}'.")


def user(*parts: Any) -> Json:
    """A message of the user."""
    return {"role": "user", "content": list(parts)}


STATUS = ", ".join(f"'{name}'" for name in STATUSES[:-1]) + f", and '{STATUSES[-1]}'"
EVERY_ITEM_TYPE = ", ".join(f"'{name}'" for name in ITEM_TYPES[:-1]) + f", and '{ITEM_TYPES[-1]}'"

REFUSED: list[tuple[Any, dict[str, Any]]] = [
    (7, wrong_type("input[1]", "an input item", "an integer")),
    (None, wrong_type("input[1]", "an input item", "null")),
    ({"type": "telepathy"}, wrong_value("input[1]", "telepathy", EVERY_ITEM_TYPE)),
    ({"type": 7}, wrong_value("input[1]", "", EVERY_ITEM_TYPE)),
    ({"type": []}, wrong_value("input[1]", "", EVERY_ITEM_TYPE)),
    ({"type": {"a": 1}}, wrong_value("input[1]", "", EVERY_ITEM_TYPE)),
    ({}, wrong_value("input[1]", "", ROLES)),
    ({"content": "Hi"}, wrong_value("input[1]", "", ROLES)),
    ({"role": "tool", "content": "Hi"}, wrong_value("input[1]", "tool", ROLES)),
    ({"role": ["user"], "content": "Hi"}, wrong_value("input[1]", "", ROLES)),
    ({"role": "user"}, missing("input[1].content")),
    ({"role": "user", "content": None}, wrong_type("input[1].content", CONTENT, "null")),
    ({"role": "user", "content": {"a": 1}}, wrong_type("input[1].content", CONTENT, "an object")),
    (user("Hi"), wrong_type("input[1].content[0]", "an object", "a string")),
    (user({"text": "Hi"}), missing("input[1].content[0].type")),
    (user({"type": "input_text"}), missing("input[1].content[0].text")),
    (user({"type": "input_text", "text": 1}), wrong_type("input[1].content[0].text", "a string", "an integer")),
    (
        user({"type": "input_text", "text": "Hi"}, {"type": "hologram"}),
        wrong_value(
            "input[1].content[1].type",
            "hologram",
            "'input_text', 'input_image', 'input_file', 'output_text', and 'refusal'",
        ),
    ),
    (
        user({"type": "output_text", "text": "Hi"}),
        wrong_value("input[1].content[0]", "output_text", "'input_text', 'input_image', and 'input_file'"),
    ),
    (
        {"role": "assistant", "content": [{"type": "input_text", "text": "Hi"}]},
        wrong_value("input[1].content[0]", "input_text", "'output_text' and 'refusal'"),
    ),
    (
        user({"type": "input_image", "image_url": "data:,", "detail": "max"}),
        wrong_value("input[1].content[0].detail", "max", "'low', 'high', 'auto', and 'original'"),
    ),
    ({"type": "function_call_output", "output": "4"}, missing("input[1].call_id")),
    ({"type": "function_call_output", "call_id": "c"}, missing("input[1].output")),
    (
        {"type": "function_call_output", "call_id": "", "output": "4"},
        refusal(
            "empty_string",
            "input[1].call_id",
            "Invalid 'input[1].call_id': empty string. "
            "Expected a string with minimum length 1, but got an empty string instead.",
        ),
    ),
    (
        {"type": "function_call_output", "call_id": "c" * 65, "output": "4"},
        refusal(
            "string_above_max_length",
            "input[1].call_id",
            "Invalid 'input[1].call_id': string too long. "
            "Expected a string with maximum length 64, but got a string with length 65 instead.",
        ),
    ),
    (
        {"type": "function_call_output", "call_id": "c", "output": {"a": 1}},
        wrong_type("input[1].output", "one of a string or array of objects", "an object"),
    ),
    (
        {"type": "function_call_output", "call_id": "c", "output": [{"type": "output_text", "text": "4"}]},
        wrong_value("input[1].output[0].type", "output_text", "'input_text', 'input_image', and 'input_file'"),
    ),
    ({"type": "function_call", "call_id": "c", "arguments": "{}"}, missing("input[1].name")),
    (
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": {}},
        wrong_type("input[1].arguments", "a string", "an object"),
    ),
    ({"type": "reasoning", "summary": "x"}, wrong_type("input[1].summary", "an array of objects", "a string")),
    (
        {"type": "reasoning", "content": [{"type": "text", "text": "x"}]},
        wrong_value("input[1].content[0].type", "text", "'reasoning_text'"),
    ),
    ({"type": "mcp_call", "name": "f", "arguments": "{}"}, missing("input[1].server_label")),
    (
        {"type": "mcp_list_tools", "server_label": "s", "tools": ["f"]},
        wrong_type("input[1].tools[0]", "an object", "a string"),
    ),
    ({"type": "item_reference"}, missing("input[1].id")),
    ({"type": "item_reference", "id": None}, wrong_type("input[1].id", "a string", "null")),
    (
        {"type": "item_reference", "id": ""},
        refusal(
            "empty_string",
            "input[1].id",
            "Invalid 'input[1].id': empty string. "
            "Expected a string with minimum length 1, but got an empty string instead.",
        ),
    ),
    (
        {"type": "additional_tools", "role": "user", "tools": []},
        wrong_value("input[1].role", "user", "'developer'"),
    ),
    ({"type": "additional_tools", "role": "developer"}, missing("input[1].tools")),
    ({"type": "agent_message", "author": "a", "content": []}, missing("input[1].recipient")),
    (
        {"type": "agent_message", "author": "a", "recipient": "b", "content": [{"type": "output_text"}]},
        wrong_value(
            "input[1].content[0].type",
            "output_text",
            "'input_text', 'input_image', 'input_file', and 'encrypted_content'",
        ),
    ),
    (
        {"type": "additional_tools", "role": "developer", "tools": [{"type": "mcp"}]},
        wrong_value(
            "input[1].tools[0].type",
            "mcp",
            "'function', 'custom', 'namespace', 'tool_search', 'shell', 'local_shell', and 'apply_patch'",
        ),
    ),
    (
        {"type": "additional_tools", "role": "developer", "tools": [{"type": "apply_patch"}] * 129},
        refusal(
            "array_above_max_length",
            "input[1].tools",
            "Invalid 'input[1].tools': array too long. "
            "Expected an array with maximum length 128, but got an array with length 129 instead.",
        ),
    ),
    *[
        ({"role": "user", "content": "Hi", **fields}, expected)
        for fields, expected in (
            ({"id": 7}, wrong_type("input[1].id", "a string", "an integer")),
            ({"status": "done"}, wrong_value("input[1].status", "done", STATUS)),
            ({"status": 1}, wrong_type("input[1].status", f"one of {STATUS.replace(' and ', ' or ')}", "an integer")),
        )
    ],
    *[
        (
            user({"type": "input_image", **fields}),
            refusal(
                "missing_mutually_exclusive_parameters",
                "input[1].content[0]",
                "Missing mutually exclusive parameters: 'input[1].content[0]'. "
                "Ensure you are providing exactly one of: 'file_id' or 'image_url'.",
            ),
        )
        for fields in ({}, {"image_url": None, "file_id": None, "detail": "auto"})
    ],
    (
        {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_image"}]},
        refusal(
            "missing_mutually_exclusive_parameters",
            "input[1].output[0]",
            "Missing mutually exclusive parameters: 'input[1].output[0]'. "
            "Ensure you are providing exactly one of: 'file_id' or 'image_url'.",
        ),
    ),
    (
        user({"type": "input_file", "file_id": "file-1", "file_url": "https://h/a.pdf"}),
        refusal(
            "mutually_exclusive_parameters",
            "input[1].content[0]",
            "Mutually exclusive parameters: 'input[1].content[0]'. "
            "Ensure you are only providing one of: 'file_id', 'file_data', or 'file_url'.",
        ),
    ),
    (
        user({"type": "input_image", "image_url": "file:///etc/passwd"}),
        refusal(
            "invalid_value",
            "input[1].content[0].image_url",
            "Invalid 'input[1].content[0].image_url': expected an http or https URL, or a data URL.",
        ),
    ),
    (
        user({"type": "input_image", "image_url": {"url": "https://h/a.png"}}),
        wrong_type("input[1].content[0].image_url", "a string", "an object"),
    ),
    (
        user({"type": "input_file", "file_data": "data:,", "detail": "original"}),
        wrong_value("input[1].content[0].detail", "original", "'auto', 'low', and 'high'"),
    ),
    (
        {"role": "assistant", "content": [{"type": "output_text", "text": "4", "annotations": ["a"]}]},
        wrong_type("input[1].content[0].annotations[0]", "an object", "a string"),
    ),
    (
        {"type": "computer_call_output", "call_id": "c", "output": {"type": "input_image", "image_url": "data:,"}},
        wrong_value("input[1].output.type", "input_image", "'computer_screenshot'"),
    ),
    (
        {"type": "apply_patch_call_output", "call_id": "c", "status": "incomplete"},
        wrong_value("input[1].status", "incomplete", "'completed' and 'failed'"),
    ),
    (
        {"type": "tool_search_output", "tools": [{"type": "mcp", "server_label": "s", "authorization": "s3cret"}]},
        wrong_value("input[1].tools[0].type", "mcp", "'function', 'custom', and 'namespace'"),
    ),
    (
        {"type": "mcp_call", "server_label": "s", "name": "f", "arguments": "{}", "approval_request_id": {}},
        wrong_type("input[1].approval_request_id", "a string", "an object"),
    ),
    (
        {"type": "mcp_approval_response", "approve": True},
        missing("input[1].approval_request_id"),
    ),
    (
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1"},
        missing("input[1].approve"),
    ),
    (
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": "yes"},
        wrong_type("input[1].approve", "a boolean", "a string"),
    ),
    (
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": False, "reason": 1},
        wrong_type("input[1].reason", "a string", "an integer"),
    ),
    (
        {"type": "mcp_approval_request", "server_label": "s", "name": "f", "arguments": "{}"},
        missing("input[1].id"),
    ),
]


@pytest.mark.parametrize(("item", "expected"), REFUSED)
def test_input_with_an_item_that_is_wrong_answers_400_with_its_path(
    item: Any, expected: dict[str, Any], answer: Answer
) -> None:
    assert answer(input=[user(), item, {"type": "wrong as well"}]) == expected


@pytest.mark.parametrize("item", [{"id": "x y"}, {"id": "x y", "type": None}, {"id": "x", "type": "item_reference"}])
def test_input_with_a_reference_is_accepted_in_each_of_its_forms(item: Json, answer: Answer) -> None:
    assert is_reference(item)
    assert answer(input=[item]) is None


@pytest.mark.parametrize("item", [{"id": "msg_1", "role": "user", "content": "Hi"}, {"type": "message"}, {"id": ""}])
def test_is_reference_of_an_item_with_more_than_an_id_is_false(item: Json) -> None:
    assert is_reference(item) is (set(item) == {"id"})


def names_in(literal: Any) -> set[str]:
    """The strings of a `Literal`, however it is wrapped."""
    if isinstance(literal, str):
        return {literal}
    return {name for inner in get_args(literal) for name in names_in(inner)}


CODEX_SENDS = {"agent_message"}


def test_item_types_are_those_of_the_api_and_of_codex() -> None:
    literals = [get_type_hints(member).get("type") for member in get_args(ResponseInputItemParam)]
    theirs = {name for literal in literals for name in names_in(literal)}
    assert theirs | CODEX_SENDS == set(ITEM_TYPES)


TEXT = {"type": "output_text", "annotations": [], "logprobs": [], "text": "4"}
OUTPUT: list[Json] = [
    {
        "id": "rs_1",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "Add."}],
        "encrypted_content": None,
    },
    {
        "id": "rs_2",
        "type": "reasoning",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "2"}],
        "status": None,
    },
    {"type": "reasoning", "content": None},
    {"id": "mcpl_1", "type": "mcp_list_tools", "server_label": "s", "error": None, "tools": [{"name": "f"}]},
    {
        "id": "mcp_1",
        "type": "mcp_call",
        "status": "failed",
        "approval_request_id": None,
        "arguments": '{"a":',
        "error": {"type": "mcp_tool_execution_error", "content": []},
        "name": "f",
        "output": None,
        "server_label": "s",
    },
    {"id": "fc_1", "type": "function_call", "status": "completed", "arguments": "{}", "call_id": "call_1", "name": "f"},
    {"id": None, "type": "function_call", "status": None, "arguments": "", "call_id": "call_2", "name": "g.h i"},
    {
        "id": "ctc_1",
        "type": "custom_tool_call",
        "status": "completed",
        "call_id": "call_3",
        "name": "f",
        "input": "x\n",
    },
    {"id": "msg_1", "type": "message", "status": "completed", "content": [TEXT], "role": "assistant", "phase": "final"},
    {"id": "msg_2", "type": "message", "content": [{"type": "refusal", "refusal": "No."}], "role": "assistant"},
    {"id": "msg_3", "type": "message", "content": [{**TEXT, "parsed": None, "logprobs": None}], "role": "assistant"},
]


def test_input_with_all_that_a_response_put_out_is_accepted(answer: Answer) -> None:
    assert answer(input=[user({"type": "input_text", "text": "2+2?"}), *OUTPUT]) is None


@pytest.mark.parametrize(
    "item",
    [
        {"role": "user", "content": "Hi"},
        {"role": "system", "content": "Hi"},
        {"role": "developer", "content": [{"type": "input_text", "text": "Hi"}]},
        {"role": "assistant", "content": "Hi", "type": None},
        {"role": "assistant", "content": []},
        {"role": "user", "content": ""},
        user({"type": "input_text", "text": "\ud83d\u0000"}),
        user({"type": "input_image", "image_url": "data:image/png;base64,", "detail": None, "file_id": None}),
        user({"type": "input_file", "file_data": "data:,", "filename": "a.txt", "of_tomorrow": 1}),
        {"type": "function_call_output", "call_id": "c", "output": ""},
        {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "4"}], "id": None},
        {"type": "custom_tool_call_output", "call_id": "c", "output": "4", "name": "f"},
        user({"type": "input_image", "file_id": "file-1", "detail": "original"}),
        user({"type": "input_file", "file_id": "file-1", "file_url": None, "detail": "low"}),
        {"type": "web_search_call", "id": "ws_1", "status": "searching"},
        {"type": "web_search_call", "action": {"type": "search", "query": "q", "sources": []}},
        {"type": "file_search_call", "queries": ["q"], "results": None, "status": "failed"},
        {"type": "code_interpreter_call", "code": None, "container_id": "c", "outputs": [], "status": "interpreting"},
        {"type": "image_generation_call", "result": None, "status": "generating"},
        {"type": "computer_call", "call_id": "c", "action": {"type": "wait"}, "pending_safety_checks": []},
        {
            "type": "computer_call_output",
            "call_id": "c",
            "output": {"type": "computer_screenshot", "image_url": "data:,"},
            "acknowledged_safety_checks": [{"id": "s"}],
        },
        {"type": "local_shell_call", "call_id": "c", "action": {"type": "exec", "command": ["ls"], "env": {}}},
        {"type": "local_shell_call_output", "id": "c", "output": "{}"},
        {"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}, "environment": None},
        {
            "type": "shell_call_output",
            "call_id": "c",
            "output": [{"stdout": "", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
        },
        {"type": "apply_patch_call", "call_id": "c", "operation": {"type": "delete_file", "path": "a"}},
        {"type": "apply_patch_call_output", "call_id": "c", "status": "failed", "output": None},
        {"type": "tool_search_call", "arguments": {"goal": "g"}, "execution": "client", "call_id": None},
        {"type": "tool_search_call", "arguments": None},
        {"type": "tool_search_output", "call_id": "c", "tools": [{"type": "function", "name": "f"}]},
        {"type": "configuration_update", "reasoning": {"effort": "low"}},
        {"type": "compaction", "id": "cmp_1", "encrypted_content": "x"},
        {"type": "compaction_trigger"},
        {"type": "program", "call_id": "c", "code": "x", "fingerprint": "y"},
        {"type": "program_output", "call_id": "c", "result": "x", "status": "completed"},
        {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "s", "name": "f", "arguments": "{}"},
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
        {"type": "mcp_approval_response", "approval_request_id": "x", "approve": False, "reason": "no", "id": "mcpa_1"},
        {"type": "function_call_output", "call_id": "c", "output": [
            {"type": "input_text", "text": ""},
            {"type": "input_image", "image_url": "https://h/a.png", "detail": "high"},
            {"type": "input_file", "file_data": "data:,", "filename": "a"},
        ]},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}", "namespace": "n", "caller": None},
        *[{"role": "user", "content": "Hi", "id": given}
          for given in ("", "call_1", "item 7/\u00e9", "x" * 64, "\u0000")],
    ],
)  # fmt: skip
def test_input_with_an_item_of_the_api_is_accepted(item: Json, answer: Answer) -> None:
    assert answer(input=[item]) is None
