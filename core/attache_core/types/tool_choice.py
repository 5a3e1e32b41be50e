"""`tool_choice`: its forms, and that what it names is declared.

Knows every form of the API; is unaware of how a choice is carried out. Invariant: a choice that passes names only what
the request declares. Source: API reference, "tool_choice"; wording as OpenAI's API answers it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any

from pydantic import PlainValidator, ValidationInfo

from attache_core.errors import ClientError
from attache_core.json_codec import Json
from attache_core.types.extensions import Extensions, extensions_of
from attache_core.types.shape import Check, RequiredText, Shape, array_of, json_object, named_by_type, one_of
from attache_core.types.tools import chosen_type, declared
from attache_core.types.violation import enumerated, quoted, wrong_type, wrong_value

_objects = array_of(json_object, "an array of objects")

MODES = ("none", "auto", "required")


class NamedChoice(Shape):
    """One function or custom tool."""

    name: RequiredText


class McpChoice(Shape):
    """One MCP server, or one of its tools."""

    server_label: RequiredText
    name: str | None = None


class AllowedTools(Shape):
    """A selection of the declared tools."""

    mode: Annotated[str, one_of("auto", "required")]
    tools: Annotated[Any, PlainValidator(_objects)]


_CHOICES: dict[str, type[Shape]] = {
    "function": NamedChoice,
    "mcp": McpChoice,
    "custom": NamedChoice,
    "allowed_tools": AllowedTools,
}
_BY_TYPE = ("file_search", "web_search", "web_search_preview", "computer", "code_interpreter", "image_generation",
            "shell", "apply_patch")  # fmt: skip
"""What is chosen by its type alone."""


@lru_cache(maxsize=8)
def _choice_check(extensions: Extensions) -> Check:
    return named_by_type(_CHOICES, supported=tuple(dict.fromkeys((*_CHOICES, *_BY_TYPE, *extensions.tools))))


def check_tool_choice(value: Any, info: ValidationInfo) -> Any:  # noqa: ANN401 - any JSON value
    """Look at the shape of `tool_choice`; see `require_declared` for what it names."""
    if isinstance(value, dict):
        return _choice_check(extensions_of(info))(value)
    if not isinstance(value, str):
        raise wrong_type(f"one of an object or {enumerated(MODES, 'or')}", value)
    if value not in MODES:
        raise wrong_value(value, MODES)
    return value


def require_declared(choice: str | Json | None, tools: Sequence[Json] | None) -> None:
    """Raises ClientError when `tool_choice` (of valid shape) asks for a tool that `tools` (valid as well) lacks."""
    known = tools or ()
    if choice == "required" and not known:
        raise ClientError("Tool choice 'required' must be specified with 'tools' parameter.", param="tool_choice")
    if not isinstance(choice, Mapping):
        return
    wanted = choice["tools"] if choice["type"] == "allowed_tools" else [choice]
    for reference in wanted:
        if not _is_declared(reference, known):
            kind = quoted(reference.get("type"))
            raise ClientError(f"Tool choice {kind} not found in 'tools' parameter.", param="tool_choice")


def _is_declared(reference: Json, tools: Sequence[Json]) -> bool:
    match reference.get("type"):
        case "function":
            return reference.get("name") in declared(tools, "function", "name")
        case "custom":
            return reference.get("name") in declared(tools, "custom", "name")
        case "mcp":
            return reference.get("server_label") in declared(tools, "mcp", "server_label")
        case "namespace" | "tool_search":  # no choice of the API
            return False
        case kind:
            return isinstance(kind, str) and any(chosen_type(tool["type"]) == chosen_type(kind) for tool in tools)
