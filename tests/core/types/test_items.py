"""Input items: what is taken as it is, and what is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from attache_core.json_codec import Json
from attache_core.types.items import ITEM_TYPES

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


EVERY_ITEM_TYPE = ", ".join(f"'{name}'" for name in ITEM_TYPES[:-1]) + f", and '{ITEM_TYPES[-1]}'"

REFUSED: list[tuple[Any, dict[str, Any]]] = [
    (7, wrong_type("input[1]", "an input item", "an integer")),
    (None, wrong_type("input[1]", "an input item", "null")),
    ({"type": "telepathy"}, wrong_value("input[1]", "telepathy", EVERY_ITEM_TYPE)),
    ({"type": 7}, wrong_value("input[1]", "", EVERY_ITEM_TYPE)),
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
    (
        {"type": "item_reference", "id": "msg_1"},
        refusal(
            "unsupported_value",
            "input[1]",
            "Items of type 'item_reference' are not supported by this gateway yet. "
            "Send the item itself, or continue from it with 'previous_response_id'.",
        ),
    ),
    (
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
        refusal(
            "unsupported_value",
            "input[1]",
            "Items of type 'mcp_approval_response' are not supported by this gateway yet. "
            "MCP tools run without approval, with 'require_approval' set to 'never'.",
        ),
    ),
]


@pytest.mark.parametrize(("item", "expected"), REFUSED)
def test_input_with_an_item_that_is_wrong_answers_400_with_its_path(
    item: Any, expected: dict[str, Any], answer: Answer
) -> None:
    assert answer(input=[user(), item, {"type": "wrong as well"}]) == expected


def test_input_with_only_an_id_is_a_reference_and_refused(answer: Answer) -> None:
    referred = answer(input=[{"id": "msg_1", "type": None}])
    assert referred == answer(input=[{"type": "item_reference", "id": "msg_1"}])


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
        *[{"type": name} for name in ITEM_TYPES if name.endswith("_call") and name.split("_")[0] not in
          ("function", "custom", "mcp")],
        {"type": "compaction", "id": "cmp_1", "encrypted_content": "x"},
    ],
)  # fmt: skip
def test_input_with_an_item_of_the_api_is_accepted(item: Json, answer: Answer) -> None:
    assert answer(input=[item]) is None
