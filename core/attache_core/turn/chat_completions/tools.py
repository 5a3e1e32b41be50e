"""`tools` and `tool_choice` as a chat request has them: function tools only.

A custom tool is declared as a function whose one parameter is its input. A grammar that the input must follow is told
in the description: no schema can say it, and the server does not hold the model to it. A namespace is its tools, the
first of which is described with the namespace's own words before its own.

A selection (`allowed_tools`) is made by declaring no other tools, because hardly a server knows the form that the Chat
Completions API has for it. Source: API reference, "tools" and "tool_choice" of the chat completion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from attache_core.events.custom_input import input_parameters
from attache_core.json_codec import Json
from attache_core.turn.chat_completions.function_names import FunctionNames
from attache_core.turn.chat_completions.not_expressible import not_expressible

_GRAMMARS: Final[Mapping[object, str]] = {"lark": "Lark grammar", "regex": "regular expression"}


def chat_tools(tools: Sequence[Json], choice: object, parallel: object, names: FunctionNames) -> Json:
    """`tools`, `tool_choice` and `parallel_tool_calls` of the chat request, those that there are.

    `names` are of `tools`. Without tools there is nothing to choose, and chat servers refuse both other parameters.

    Raises:
        ClientError: a tool is no function, or the choice is of none.
    """
    functions = [
        function for index, tool in enumerate(tools) for function in _functions(tool, f"tools[{index}]", names)
    ]
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


def _functions(tool: Json, param: str, names: FunctionNames) -> list[Json]:
    if tool.get("type") != "namespace":
        return [_function(tool, param, names.of(tool.get("name")))]
    members: Sequence[Json] = tool.get("tools") or ()
    functions = [
        _function(member, f"{param}.tools[{index}]", names.of(member.get("name"), tool.get("name")))
        for index, member in enumerate(members)
    ]
    for first in functions[:1]:
        first["function"].update(_described(tool.get("description"), first["function"].get("description")))
    return functions


def _function(tool: Json, param: str, name: object) -> Json:
    if tool.get("type") == "custom":
        given = {**_described(tool.get("description"), _grammar(tool, param)), "parameters": input_parameters()}
    elif tool.get("type") == "function":
        given = {field: value for field, value in tool.items() if field not in ("type", "name") and value is not None}
    else:
        raise not_expressible(f"A tool of type '{tool.get('type')}'", f"{param}.type")
    return {"type": "function", "function": {"name": name, **given}}


def _grammar(tool: Json, param: str) -> str | None:
    given = tool.get("format") or {"type": "text"}
    if given.get("type") == "text":
        return None
    if given.get("type") != "grammar":
        raise not_expressible(f"A custom tool with a format of type '{given.get('type')}'", f"{param}.format.type")
    syntax = given.get("syntax")
    return f"The input must match this {_GRAMMARS.get(syntax, f'{syntax} grammar')}:\n{given.get('definition')}"


def _described(*texts: object) -> Json:
    given = [str(text) for text in texts if text]
    return {"description": "\n\n".join(given)} if given else {}


def _chosen(choice: Json) -> object:
    if choice.get("type") not in ("function", "custom"):
        raise not_expressible(f"A tool choice of type '{choice.get('type')}'", "tool_choice")
    return choice.get("name")
