"""The tool type `custom`: free text as input. To the model it is a function with one parameter that is a text.

A grammar is told to the model in the description; nothing holds it to it, because no inference server has a form for
that in a function. The text comes out of the arguments while they are written (see `custom_input`).
"""

from __future__ import annotations

from typing import ClassVar

from attache_core.events.growing_text import GrowingText
from attache_core.events.model_events import Delta, ItemAdded, ItemDone, ModelEvent
from attache_core.json_codec import Json, encode
from attache_core.tools.client.custom_input import CUSTOM_INPUT, CustomInput, input_parameters
from attache_core.tools.function_items import function_call, function_call_output, pair_id, untellable
from attache_core.tools.function_tool import function_tool
from attache_core.tools.tool_type import ClientTool, ModelNames, Naming, Offer, OfferedTool, ToolType
from attache_core.types.tools import SHAPES


def tell_custom_call(item: Json, position: int, names: ModelNames) -> list[Json]:
    """The function call that the model made."""
    del position
    namespace = item.get("namespace")
    owner, naming = (None, Naming.FREE) if namespace is None else (str(namespace), Naming.LABELLED)
    name = names.name_of("custom", owner, str(item.get("name")), naming)
    return [function_call(_call_id(item), name, encode({CUSTOM_INPUT: item.get("input") or ""}).decode())]


def tell_custom_output(item: Json, position: int, names: ModelNames) -> list[Json]:
    """Its output, text or parts."""
    del position, names
    return [function_call_output(_call_id(item), item.get("output"))]


class CustomType(ToolType):
    """Tools with free text as input, which the client executes."""

    shapes: ClassVar = {"custom": SHAPES["custom"]}
    tellers: ClassVar = {"custom_tool_call": tell_custom_call, "custom_tool_call_output": tell_custom_output}

    async def offer(self, declaration: Json) -> Offer:
        """The function that stands for it, under its own name."""
        return Offer((offered_custom(declaration),))


def offered_custom(declaration: Json, namespace: str | None = None) -> OfferedTool:
    """A declared custom tool as a tool, alone or in a namespace."""
    name = declaration["name"]
    return OfferedTool(
        "custom",
        namespace,
        name,
        function_tool(name, _description(declaration), input_parameters()),
        ClientTool(lambda: CustomCall(name, namespace)),
        Naming.FIXED if namespace is None else Naming.LABELLED,
        declaration.get("defer_loading") is True,
    )


class CustomCall:
    """One call: arguments in, input out."""

    def __init__(self, name: str, namespace: str | None = None) -> None:
        self._names = {"name": name} if namespace is None else {"name": name, "namespace": namespace}
        self._input = CustomInput()
        self._said = GrowingText()

    def feed(self, said: ModelEvent) -> list[ModelEvent]:
        """See `ClientCall`: the last word on the arguments wins, as it does in the accumulator."""
        match said:
            case ItemAdded():
                return [ItemAdded(said.key, self._item(said.item, ""))]
            case Delta():
                return self._more(said.key, self._input.feed(said.text))
            case ItemDone():
                whole = custom_input(said.item.get("arguments") or "")
                before = self._said.value
                rest = whole.removeprefix(before) if whole.startswith(before) else ""
                return [*self._more(said.key, rest), ItemDone(said.key, self._item(said.item, whole))]
            case _:
                return [said]

    def _more(self, key: str, text: str) -> list[ModelEvent]:
        self._said.add(text)
        return [Delta(key, None, "input", text)] if text else []

    def _item(self, call: Json, text: str) -> Json:
        shown = {"status": call.get("status"), "call_id": call.get("call_id"), "input": text}
        return {"type": "custom_tool_call", **shown, **self._names}


def custom_input(arguments: str) -> str:
    """The input that these arguments hold."""
    reader = CustomInput()
    return reader.feed(arguments) + reader.close()


def _description(declaration: Json) -> str | None:
    given: str | None = declaration.get("description")
    rules = declaration.get("format") or {}
    if rules.get("type") != "grammar":
        return given
    told = f"The input must follow this {rules['syntax']} grammar:\n{rules['definition']}"
    return f"{given}\n\n{told}" if given else told


def _call_id(item: Json) -> str:
    call_id = pair_id(item)
    if call_id is None:
        raise untellable(str(item.get("type")))
    return call_id
