"""Input items: what may stand in `input`, and in what shape.

Knows the item types of the API; is unaware of what becomes of an item. Items that models and gateways made
(`input += response.output`) are taken as they are, ids and nulls included: of what a hosted tool did, only the fields
that are there are looked at. What a client writes itself must be whole. Ids are optional and anybody's. Invariant: a
type that is not known is refused by name, never dropped.
Source: API reference, "input"; param paths and wording as OpenAI's API answers them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any

from pydantic import PlainValidator, ValidationInfo

from attache_core.types.content import (
    check_agent_content,
    check_call_output,
    check_input_content,
    check_output_content,
    check_reasoning,
    check_screenshot,
    check_summary,
)
from attache_core.types.extensions import NO_EXTENSIONS, Extensions, extensions_of
from attache_core.types.shape import (
    Check,
    Id,
    RequiredId,
    RequiredText,
    Shape,
    array_of,
    json_object,
    one_of,
    text,
    text_or_array_of,
)
from attache_core.types.tools import check_additional_tools, check_loaded_tools
from attache_core.types.violation import missing, wrong_type, wrong_value

ROLES = ("assistant", "system", "developer", "user")

STATUSES = ("in_progress", "completed", "incomplete", "failed", "searching", "interpreting", "generating", "calling")
"""What the `status` of an item may be; each type has some of these."""

_objects = array_of(json_object, "an array of objects")
_texts = array_of(text, "an array of strings")

JsonObject = Annotated[Any, PlainValidator(json_object)]
Objects = Annotated[Any, PlainValidator(_objects)]
Texts = Annotated[Any, PlainValidator(_texts)]


class Item(Shape):
    """What items have in common."""

    id: Id | None = None
    status: Annotated[str, one_of(*STATUSES)] | None = None


class InputMessage(Item):
    """A message of role user, system or developer."""

    content: Annotated[Any, PlainValidator(check_input_content)]


class OutputMessage(Item):
    """A message of role assistant."""

    content: Annotated[Any, PlainValidator(check_output_content)]


class ItemReference(Shape):
    """An item that the gateway has stored, by its id."""

    id: RequiredId


class Reasoning(Item):
    """What a model thought; ids and content are optional, because not every server gives them."""

    summary: Annotated[Any, PlainValidator(check_summary)] | None = None
    content: Annotated[Any, PlainValidator(check_reasoning)] | None = None
    encrypted_content: str | None = None


class Compaction(Item):
    """What stands for older items."""

    encrypted_content: str


class ConfigurationUpdate(Item):
    """What changes from here on."""

    reasoning: JsonObject | None = None
    text: JsonObject | None = None


class FunctionCall(Item):
    """A call of a function tool; `arguments` is JSON text, perhaps broken."""

    call_id: RequiredId
    name: RequiredText
    arguments: str
    namespace: str | None = None


class CustomToolCall(Item):
    """A call of a custom tool; `input` is free text."""

    call_id: RequiredId
    name: RequiredText
    input: str
    namespace: str | None = None


class CallOutput(Item):
    """What a function or custom tool answered: text or parts."""

    call_id: RequiredId
    output: Annotated[Any, PlainValidator(check_call_output)]


class McpCall(Item):
    """A call that a gateway made, with its outcome."""

    approval_request_id: Id | None = None
    server_label: RequiredText
    name: RequiredText
    arguments: str
    output: str | None = None


class McpListTools(Item):
    """The tools that a gateway found at an MCP server."""

    server_label: RequiredText
    tools: Objects


class McpApprovalRequest(Item):
    """A call that a gateway would make."""

    id: RequiredId
    server_label: RequiredText
    name: RequiredText
    arguments: str


class McpApprovalResponse(Item):
    """Whether it may make it."""

    approval_request_id: RequiredId
    approve: bool
    reason: str | None = None


class WebSearchCall(Item):
    """A search of a hosted tool."""

    action: JsonObject | None = None


class FileSearchCall(Item):
    """A search of a hosted tool."""

    queries: Texts | None = None
    results: Objects | None = None


class CodeInterpreterCall(Item):
    """Code that a hosted tool ran."""

    code: str | None = None
    container_id: str | None = None
    outputs: Objects | None = None


class ImageGenerationCall(Item):
    """An image that a hosted tool made."""

    result: str | None = None


class ComputerCall(Item):
    """What a model wants done with a computer."""

    call_id: RequiredId
    action: JsonObject | None = None
    actions: Objects | None = None
    pending_safety_checks: Objects | None = None


class ComputerCallOutput(Item):
    """What the computer showed then."""

    call_id: RequiredId
    output: Annotated[Any, PlainValidator(check_screenshot)]
    acknowledged_safety_checks: Objects | None = None


class LocalShellCall(Item):
    """A command that a model wants run."""

    call_id: RequiredId
    action: JsonObject


class LocalShellCallOutput(Item):
    """What it printed."""

    output: str


class ShellCall(Item):
    """Commands that a model wants run."""

    call_id: RequiredId
    action: JsonObject


class ShellCallOutput(Item):
    """What they printed, and how each ended."""

    call_id: RequiredId
    output: Objects


class ApplyPatchCall(Item):
    """A change of a file that a model wants made."""

    call_id: RequiredId
    operation: JsonObject


class ApplyPatchCallOutput(Item):
    """Whether it was made."""

    call_id: RequiredId
    status: Annotated[str, one_of("completed", "failed")]
    output: str | None = None


class ToolSearchCall(Item):
    """A search for tools; `arguments` is any JSON."""

    call_id: Id | None = None
    arguments: Any


class ToolSearchOutput(Item):
    """The tools that were found; from here on the model may call them."""

    call_id: Id | None = None
    tools: Annotated[Any, PlainValidator(check_loaded_tools)]


class AdditionalTools(Item):
    """Further tools of the client; from here on the model may call them."""

    role: Annotated[str, one_of("developer")]
    tools: Annotated[Any, PlainValidator(check_additional_tools)]


class AgentMessage(Item):
    """What one of a client's agents says to another; Codex sends it, though the API's reference does not know it."""

    author: str
    recipient: str
    content: Annotated[Any, PlainValidator(check_agent_content)]


class Program(Item):
    """Code by which a model calls tools."""

    call_id: RequiredId
    code: str
    fingerprint: str


class ProgramOutput(Item):
    """What it came to."""

    call_id: RequiredId
    result: str


_SHAPES: dict[str, type[Shape]] = {
    "item_reference": ItemReference,
    "reasoning": Reasoning,
    "function_call": FunctionCall,
    "function_call_output": CallOutput,
    "custom_tool_call": CustomToolCall,
    "custom_tool_call_output": CallOutput,
    "mcp_call": McpCall,
    "mcp_list_tools": McpListTools,
    "mcp_approval_request": McpApprovalRequest,
    "mcp_approval_response": McpApprovalResponse,
    "web_search_call": WebSearchCall,
    "file_search_call": FileSearchCall,
    "code_interpreter_call": CodeInterpreterCall,
    "image_generation_call": ImageGenerationCall,
    "computer_call": ComputerCall,
    "computer_call_output": ComputerCallOutput,
    "shell_call": ShellCall,
    "shell_call_output": ShellCallOutput,
    "local_shell_call": LocalShellCall,
    "local_shell_call_output": LocalShellCallOutput,
    "apply_patch_call": ApplyPatchCall,
    "apply_patch_call_output": ApplyPatchCallOutput,
    "tool_search_call": ToolSearchCall,
    "tool_search_output": ToolSearchOutput,
    "additional_tools": AdditionalTools,
    "agent_message": AgentMessage,
    "configuration_update": ConfigurationUpdate,
    "compaction": Compaction,
    "compaction_trigger": Item,
    "program": Program,
    "program_output": ProgramOutput,
}

ITEM_TYPES = ("message", *_SHAPES)
"""Every item type that `input` may hold."""

ORCHESTRATION_ITEMS = frozenset({"mcp_list_tools", "mcp_approval_request", "mcp_approval_response"})
"""Items that only orchestration sees; no inference server knows them."""


def is_reference(item: dict[str, Any]) -> bool:
    """Whether an input item stands for a stored one: by its `type`, or because it is nothing but an `id`."""
    kind = item.get("type")
    return kind == "item_reference" or (kind is None and "id" in item and set(item) <= {"id", "type"})


def check_item(value: Any, extensions: Extensions = NO_EXTENSIONS) -> Any:  # noqa: ANN401 - any JSON value
    """Look at one element of `input`; one without `type` is a message, or a reference (see `is_reference`)."""
    if not isinstance(value, dict):
        raise wrong_type("an input item", value)
    kind = value.get("type")
    if kind is None:
        kind = "item_reference" if is_reference(value) else "message"
    if kind == "message":
        return _check_message(value)
    if isinstance(kind, str) and kind in extensions.items:
        return Item.model_validate(value)
    if not isinstance(kind, str) or kind not in ITEM_TYPES:
        raise wrong_value(kind, ITEM_TYPES)
    return _SHAPES[kind].model_validate(value)


def _check_message(value: dict[str, Any]) -> Shape:
    role = value.get("role")
    if role not in ROLES:
        raise wrong_value(role, ROLES)
    if "content" not in value:
        raise missing("content")
    return (OutputMessage if role == "assistant" else InputMessage).model_validate(value)


@lru_cache(maxsize=8)
def _input_check(extensions: Extensions) -> Check:
    return text_or_array_of(lambda item: check_item(item, extensions), "one of a string or array of input items")


def check_input(value: Any, info: ValidationInfo) -> Any:  # noqa: ANN401 - any JSON value
    """Look at the `input` of a request."""
    return _input_check(extensions_of(info))(value)
