"""`tool_choice` as an inference server understands it: every tool by the function that stands for it. Pure.

Source: API reference, "tool_choice".
"""

from __future__ import annotations

from attache_core.json_codec import Json
from attache_core.tools.registry import ToolRegistry
from attache_core.tools.tool_type import OfferedTool
from attache_core.types.tools import chosen_type


def model_tool_choice(choice: object, registry: ToolRegistry) -> object:
    """The choice in the model's terms; `registry` has what it means.

    A tool, of whatever type, is chosen by the name that the model knows; all tools of an owner by `required`. Where the
    chosen tool is not to be had, because its server could not be listed, the model may choose for itself.
    """
    if not isinstance(choice, dict):
        return choice
    if choice.get("type") == "allowed_tools":
        chosen = [function for entry in choice.get("tools") or () for function in _chosen(entry, registry)]
        return {**choice, "tools": chosen} if chosen else "auto"
    chosen = _chosen(choice, registry)
    if not chosen:
        return "auto"
    return "required" if _is_of_all(choice) else chosen[0]


def fulfilled(choice: object) -> object:
    """The choice once the call that it forced was made: forcing it again would never end."""
    if isinstance(choice, dict) and choice.get("type") == "allowed_tools":
        return {**choice, "mode": "auto"}
    return choice if choice == "none" else "auto"


def _chosen(entry: Json, registry: ToolRegistry) -> list[Json]:
    """The functions that one entry means; one may also name a function as the model knows it."""
    return [
        {"type": "function", "name": name}
        for name, tool in registry.tools.items()
        if not tool.deferred and (_means(entry, tool) or entry == {"type": "function", "name": name})
    ]


def _means(entry: Json, tool: OfferedTool) -> bool:
    owner = entry.get("server_label", entry.get("namespace"))
    is_of_type = chosen_type(str(entry.get("type"))) == chosen_type(tool.type)
    return is_of_type and entry.get("name") in (None, tool.name) and owner == tool.owner


def _is_of_all(choice: Json) -> bool:
    return "server_label" in choice and choice.get("name") is None
