"""The tool type `function`: what the client declares is what the model is told, and the call is the client's."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from attache_core.events.model_events import ItemAdded, ItemDone, ModelEvent
from attache_core.json_codec import Json
from attache_core.tools.tool_type import ClientTool, ModelNames, Naming, Offer, OfferedTool, ToolType
from attache_core.types.tools import SHAPES


def tell_function_call(item: Json, position: int, names: ModelNames) -> list[Json]:
    """A call as it is; one of a function in a namespace under the name that the model knows."""
    del position
    namespace = item.get("namespace")
    if namespace is None:
        return [item]
    plain = {field: value for field, value in item.items() if field != "namespace"}
    name = names.name_of("function", str(namespace), str(item.get("name")), Naming.LABELLED)
    return [{**plain, "name": name}]


class FunctionType(ToolType):
    """Functions that the client executes."""

    shapes: ClassVar = {"function": SHAPES["function"]}
    tellers: ClassVar = {"function_call": tell_function_call}

    async def offer(self, declaration: Json) -> Offer:
        """The function, under its own name."""
        return Offer((offered_function(declaration),))


def offered_function(declaration: Json, namespace: str | None = None) -> OfferedTool:
    """A declared function as a tool, alone or in a namespace."""
    name = declaration["name"]
    function = {field: value for field, value in declaration.items() if field != "defer_loading"}
    deferred = declaration.get("defer_loading") is True
    if namespace is None:
        return OfferedTool("function", None, name, function, ClientTool(), Naming.FIXED, deferred)
    binding = ClientTool(lambda: _NamespacedCall(name, namespace))
    return OfferedTool("function", namespace, name, function, binding, Naming.LABELLED, deferred)


class _NamespacedCall:
    """The call as it is, with its namespace beside its own name."""

    def __init__(self, name: str, namespace: str) -> None:
        self._names = {"name": name, "namespace": namespace}

    def feed(self, said: ModelEvent) -> list[ModelEvent]:
        if isinstance(said, (ItemAdded, ItemDone)):
            return [replace(said, item={**said.item, **self._names})]
        return [said]
