"""`tools` and `tool_choice` as a chat request has them: function tools only.

A selection (`allowed_tools`) is made by declaring no other tools, because hardly a server knows the form that the Chat
Completions API has for it. Unaware of how other tools become functions, which is done above. Source: API reference,
"tools" and "tool_choice" of the chat completion.
"""

from __future__ import annotations

from collections.abc import Sequence

from attache_core.json_codec import Json
from attache_core.turn.chat_completions.not_expressible import USE_TOOL_DISPATCH, not_expressible


def chat_tools(tools: Sequence[Json], choice: object, parallel: object) -> Json:
    """`tools`, `tool_choice` and `parallel_tool_calls` of the chat request, those that there are.

    Without tools there is nothing to choose, and chat servers refuse both other parameters.

    Raises:
        ClientError: a tool is no function, or the choice is of none.
    """
    functions = [_function(tool, f"tools[{index}]") for index, tool in enumerate(tools)]
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


def _function(tool: Json, param: str) -> Json:
    if tool.get("type") != "function":
        raise not_expressible(f"A tool of type '{tool.get('type')}'", f"{param}.type", USE_TOOL_DISPATCH)
    function = {field: value for field, value in tool.items() if field != "type" and value is not None}
    return {"type": "function", "function": function}


def _chosen(choice: Json) -> object:
    if choice.get("type") != "function":
        message = f"A tool choice of type '{choice.get('type')}'"
        raise not_expressible(message, "tool_choice", USE_TOOL_DISPATCH)
    return choice.get("name")
