"""The functions that stand for a request's tools, by name: chat servers know neither custom tools nor namespaces.

A tool outside of namespaces keeps its name; one inside has the namespace before it, so that tools of the same name in
two namespaces differ. A name depends on the declarations alone, so a call in the history has the name that it had when
it was made. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from attache_core.events.chat_completions.called_tool import CalledTool
from attache_core.json_codec import Json
from attache_core.tools.names import Origin, labelled_names

_CALLS: Final[Mapping[object, Literal["function_call", "custom_tool_call"]]] = {
    "function": "function_call",
    "custom": "custom_tool_call",
}


class FunctionNames:
    """The names of one request's functions.

    Attributes:
        called: what a call of a function is a call of, for each one.
    """

    def __init__(self, tools: Sequence[Json]) -> None:
        self.called: dict[str, CalledTool] = {}
        self._in_namespaces: dict[Origin, str] = {}
        for tool in tools:
            if tool.get("type") in _CALLS:
                self._add(str(tool.get("name")), tool, None)
        for namespace in tools:
            if namespace.get("type") == "namespace":
                for member in namespace.get("tools") or ():
                    self._add_member(str(namespace.get("name")), member)

    def of(self, name: object, namespace: object = None) -> object:
        """The function that stands for a tool, whether or not it is declared any more."""
        if namespace is None:
            return name
        origin = (str(namespace), str(name))
        return self._in_namespaces.get(origin) or next(iter(labelled_names(origin)))

    def _add_member(self, namespace: str, member: Json) -> None:
        origin = (namespace, str(member.get("name")))
        function = next(name for name in labelled_names(origin) if name not in self.called)
        self._in_namespaces[origin] = function
        self._add(function, member, namespace)

    def _add(self, function: str, tool: Json, namespace: str | None) -> None:
        kind = _CALLS.get(tool.get("type"), "function_call")
        self.called[function] = CalledTool(str(tool.get("name")), kind, namespace)


def called_tools(tools: Sequence[Json]) -> Mapping[str, CalledTool]:
    """What a call of a function is a call of, for each tool of a request."""
    return FunctionNames(tools).called
