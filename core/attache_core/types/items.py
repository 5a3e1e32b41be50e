"""Input items: what may stand in `input`, and in what shape.

Knows the item and content types of the API; is unaware of what becomes of an item. Items that models and gateways
made (`input += response.output`) are taken as they are, ids and nulls included. Invariants: a type that is not known is
refused by name, never dropped; types that are known but that nothing here reads are checked by name only.
Source: API reference, "input"; param paths and wording as OpenAI's API answers them.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import PlainValidator, StringConstraints

from attache_core.types.shape import (
    Check,
    RequiredText,
    Shape,
    array_of,
    json_object,
    named_by_type,
    one_of,
    text_or_array_of,
)
from attache_core.types.violation import missing, refused, wrong_type, wrong_value

MAX_ID_CHARS = 64
"""How long an item's `id` and a `call_id` may be."""

ROLES = ("assistant", "system", "developer", "user")

Id = Annotated[str, StringConstraints(max_length=MAX_ID_CHARS)]
RequiredId = Annotated[str, StringConstraints(min_length=1, max_length=MAX_ID_CHARS)]


class InputText(Shape):
    """Text that the model reads."""

    text: str


class InputImage(Shape):
    """An image by URL (a data URL included) or by file id."""

    image_url: str | None = None
    file_id: str | None = None
    detail: Annotated[str, one_of("low", "high", "auto", "original")] | None = None


class InputFile(Shape):
    """A file by content, URL or id."""

    file_id: str | None = None
    file_data: str | None = None
    file_url: str | None = None
    filename: str | None = None


class OutputText(Shape):
    """Text that a model wrote."""

    text: str


class Refusal(Shape):
    """What a model said instead of an answer."""

    refusal: str


class ReasoningPart(Shape):
    """A part of a reasoning item's content or summary."""

    text: str


_INPUT_PARTS: dict[str, type[Shape]] = {
    "input_text": InputText,
    "input_image": InputImage,
    "input_file": InputFile,
}
_OUTPUT_PARTS: dict[str, type[Shape]] = {"output_text": OutputText, "refusal": Refusal}
_PART_TYPES = (*_INPUT_PARTS, *_OUTPUT_PARTS)


def _part_of(allowed: dict[str, type[Shape]]) -> Check:
    """A content part: the API answers a type that no message has at `.type`, one that this role has not at the part."""
    check_part = named_by_type(allowed)

    def inspect(value: Any) -> Any:  # noqa: ANN401 - any JSON value
        kind = value.get("type") if isinstance(value, dict) else None
        if isinstance(kind, str) and kind not in allowed:
            raise (
                wrong_value(kind, tuple(allowed)) if kind in _PART_TYPES else wrong_value(kind, _PART_TYPES, ("type",))
            )
        return check_part(value)

    return inspect


_CONTENT = "one of an array of objects or string"
_input_content = text_or_array_of(_part_of(_INPUT_PARTS), _CONTENT)
_output_content = text_or_array_of(_part_of(_OUTPUT_PARTS), _CONTENT)
_call_output = text_or_array_of(named_by_type(_INPUT_PARTS), "one of a string or array of objects")
_objects = array_of(json_object, "an array of objects")
_summary = array_of(named_by_type({"summary_text": ReasoningPart}), "an array of objects")
_reasoning = array_of(named_by_type({"reasoning_text": ReasoningPart}), "an array of objects")


class Item(Shape):
    """What items have in common."""

    id: Id | None = None


class InputMessage(Item):
    """A message of role user, system or developer."""

    content: Annotated[Any, PlainValidator(_input_content)]


class OutputMessage(Item):
    """A message of role assistant."""

    content: Annotated[Any, PlainValidator(_output_content)]


class Reasoning(Item):
    """What a model thought; ids and content are optional, because not every server gives them."""

    summary: Annotated[Any, PlainValidator(_summary)] | None = None
    content: Annotated[Any, PlainValidator(_reasoning)] | None = None
    encrypted_content: str | None = None


class FunctionCall(Item):
    """A call of a function tool; `arguments` is JSON text, perhaps broken."""

    call_id: RequiredId
    name: RequiredText
    arguments: str


class CustomToolCall(Item):
    """A call of a custom tool; `input` is free text."""

    call_id: RequiredId
    name: RequiredText
    input: str


class CallOutput(Item):
    """What a function or custom tool answered: text or parts."""

    call_id: RequiredId
    output: Annotated[Any, PlainValidator(_call_output)]


class McpCall(Item):
    """A call that a gateway made, with its outcome."""

    server_label: RequiredText
    name: RequiredText
    arguments: str
    output: str | None = None


class McpListTools(Item):
    """The tools that a gateway found at an MCP server."""

    server_label: RequiredText
    tools: Annotated[Any, PlainValidator(_objects)]


_SHAPES: dict[str, type[Shape]] = {
    "reasoning": Reasoning,
    "function_call": FunctionCall,
    "function_call_output": CallOutput,
    "custom_tool_call": CustomToolCall,
    "custom_tool_call_output": CallOutput,
    "mcp_call": McpCall,
    "mcp_list_tools": McpListTools,
}

ITEM_TYPES = (
    "message",
    *_SHAPES,
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "computer_call",
    "computer_call_output",
    "shell_call",
    "shell_call_output",
    "local_shell_call",
    "local_shell_call_output",
    "apply_patch_call",
    "apply_patch_call_output",
    "tool_search_call",
    "tool_search_output",
    "configuration_update",
    "mcp_approval_request",
    "compaction",
    "compaction_trigger",
    "program",
    "program_output",
)
"""Every item type that `input` may hold."""

ORCHESTRATION_ITEMS = frozenset({"mcp_list_tools", "mcp_approval_request", "mcp_approval_response"})
"""Items that only orchestration sees; no inference server knows them."""

ORCHESTRATION_ITEMS = frozenset({"mcp_list_tools", "mcp_approval_request", "mcp_approval_response"})
"""Items that only orchestration sees; no inference server knows them."""

_UNSUPPORTED = {
    "item_reference": "Send the item itself, or continue from it with 'previous_response_id'.",
    "additional_tools": "Declare the tools in 'tools'.",
    "mcp_approval_response": "MCP tools run without approval, with 'require_approval' set to 'never'.",
}


def check_item(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Look at one element of `input`; an item without `type` is a message, or a reference when it is only an `id`."""
    if not isinstance(value, dict):
        raise wrong_type("an input item", value)
    kind = value.get("type")
    if kind is None:
        kind = "item_reference" if set(value) <= {"id", "type"} and "id" in value else "message"
    if kind == "message":
        return _check_message(value)
    if not isinstance(kind, str) or kind not in (*ITEM_TYPES, *_UNSUPPORTED):
        raise wrong_value(kind, ITEM_TYPES)
    if kind in _UNSUPPORTED:
        raise _not_supported_yet(kind)
    shape = _SHAPES.get(kind)
    return value if shape is None else shape.model_validate(value)


def _check_message(value: dict[str, Any]) -> Shape:
    role = value.get("role")
    if role not in ROLES:
        raise wrong_value(role, ROLES)
    if "content" not in value:
        raise missing("content")
    return (OutputMessage if role == "assistant" else InputMessage).model_validate(value)


def _not_supported_yet(kind: str) -> Exception:
    return refused(
        "unsupported_value", f"Items of type '{kind}' are not supported by this gateway yet. {_UNSUPPORTED[kind]}"
    )


check_input = text_or_array_of(check_item, "one of a string or array of input items")
"""Look at the `input` of a request."""
