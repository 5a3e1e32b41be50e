"""`tools` and `tool_choice` as a chat request has them: function tools only.

A custom tool is declared as a function whose one parameter is its input; a format that the input must follow is more
than a schema can say, and refused.

A selection (`allowed_tools`) is made by declaring no other tools, because hardly a server knows the form that the Chat
Completions API has for it. Source: API reference, "tools" and "tool_choice" of the chat completion.
"""

from __future__ import annotations

from collections.abc import Sequence

from attache_core.events.custom_input import input_parameters
from attache_core.json_codec import Json
from attache_core.turn.chat_completions.not_expressible import not_expressible


def chat_tools(tools: Sequence[Json], choice: object, parallel: object) -> Json:
    """`tools`, `tool_choice` and `parallel_tool_calls` of the chat request, those that there are.

    Without tools there is nothing to choose, and chat servers refuse both other parameters.

    Raises:
        ClientError: a tool is no function, or the choice is of none.
    """
    functions = [_tool(tool, index) for index, tool in enumerate(tools)]
    mode: object = choice
    if isinstance(choice, dict):
        if choice.get("type") == "allowed_tools":
            allowed = {_chosen(entry) for entry in choice.get("tools") or ()}
            functions = [tool for tool in functions if tool["function"]["name"] in allowed]
            mode = choice.get("mode")
        else:
            mode = {"type": "function", "function": {"name": _chosen(choice)}}
    if not functions:
        return {}
    given = {"tools": functions, "tool_choice": mode, "parallel_tool_calls": parallel}
    return {name: value for name, value in given.items() if value is not None}


def custom_tool_names(tools: Sequence[Json]) -> frozenset[str]:
    """The tools whose calls are to be read back as custom ones."""
    return frozenset(tool["name"] for tool in tools if tool.get("type") == "custom")


def _tool(tool: Json, index: int) -> Json:
    if tool.get("type") == "custom":
        given = {"name": tool.get("name"), "description": tool.get("description"), "parameters": input_parameters()}
        if (tool.get("format") or {"type": "text"}).get("type") != "text":
            raise not_expressible("A custom tool with a grammar", f"tools[{index}].format.type")
    elif tool.get("type") == "function":
        given = {name: value for name, value in tool.items() if name != "type"}
    else:
        raise not_expressible(f"A tool of type '{tool.get('type')}'", f"tools[{index}].type")
    return {"type": "function", "function": {name: value for name, value in given.items() if value is not None}}


def _chosen(choice: Json) -> object:
    if choice.get("type") not in ("function", "custom"):
        raise not_expressible(f"A tool choice of type '{choice.get('type')}'", "tool_choice")
    return choice.get("name")
