"""Items of tools as the function calls and outputs that stand for them.

Knows how a field of an item becomes arguments or an output; which fields those are is each tool type's to say.
Invariant: a call and its output have the same `call_id`, made of the items alone. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from attache_core.errors import ClientError
from attache_core.json_codec import Json, encode
from attache_core.tools.tool_type import ModelNames, Teller

_DIGEST_DIGITS = 48  # with a prefix as long as the ids that the gateway itself gives


@dataclass(frozen=True, slots=True)
class ToldAs:
    """How an item is told; called, it is a `Teller`.

    Attributes:
        tool: the type, and the name, of the tool that was called.
        asked: the fields that are told as the call's arguments; none for an item that is an output only. Where it is
            `arguments` alone, and that a text, it is what the model wrote.
        answered: the fields that are told as the call's output; none for an item that is a call only.
    """

    tool: str
    asked: tuple[str, ...] = ()
    answered: tuple[str, ...] = ()

    def __call__(self, item: Json, position: int, names: ModelNames) -> list[Json]:
        """The item as a function call, as the output of one, or as both.

        Raises:
            ClientError: 400, it has no `call_id`.
        """
        call_id = self._call_id(item, position)
        told: list[Json] = []
        if self.asked:
            name = names.name_of(self.tool, None, self.tool)
            told.append(function_call(call_id, name, _arguments(item, self.asked)))
        if self.answered:
            told.append(function_call_output(call_id, _text(item, self.answered)))
        return told

    def _call_id(self, item: Json, position: int) -> str:
        """The client's where call and output are two items; where both are one, made from the item's id."""
        if self.asked and self.answered:
            given = item.get("id")
            return digest("call", f"position {position}" if given is None else f"id {given}")
        call_id = pair_id(item)
        if call_id is None:
            raise untellable(str(item.get("type")))
        return call_id


HOSTED_ITEMS: dict[str, Teller] = {
    "web_search_call": ToldAs("web_search", ("action",), ("status",)),
    "file_search_call": ToldAs("file_search", ("queries",), ("results",)),
    "code_interpreter_call": ToldAs("code_interpreter", ("code",), ("outputs",)),
}
"""What OpenAI's own tools left behind in a conversation that came from there."""


def function_call(call_id: str, name: str, arguments: str) -> Json:
    """A call as an input item."""
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}


def function_call_output(call_id: str, output: object) -> Json:
    """An output as an input item."""
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def pair_id(item: Json) -> str | None:
    """What leads from a call to its output; an output of the local shell may name its call by its own `id`."""
    call_id = item.get("call_id")
    if call_id is None and item.get("type") == "local_shell_call_output":
        call_id = item.get("id")
    return None if call_id is None else str(call_id)


def digest(prefix: str, text: str) -> str:
    """An id that is made of a text: the same for the same one."""
    return f"{prefix}_{sha256(text.encode(errors='surrogatepass')).hexdigest()[:_DIGEST_DIGITS]}"


def untellable(kind: str) -> ClientError:
    """The error for an item that cannot be told."""
    message = f"Items of type '{kind}' cannot be told to the inference server behind this endpoint: leave them out."
    return ClientError(message, param="input", code="unsupported_value")


def _arguments(item: Json, names: Sequence[str]) -> str:
    """What the model wrote, where that was kept; else JSON text of the one object, or of an object of the fields."""
    fields = _fields(item, names)
    if tuple(names) == ("arguments",) and isinstance(fields.get("arguments"), str):
        return str(fields["arguments"]) or "{}"
    values = list(fields.values())
    return encode(values[0] if len(values) == 1 and isinstance(values[0], dict) else fields).decode()


def _fields(item: Json, names: Sequence[str]) -> Json:
    return {name: item[name] for name in names if item.get(name) is not None}


def _text(item: Json, names: Sequence[str]) -> str:
    """What was answered: a text as it is, everything else as JSON."""
    fields = _fields(item, names)
    values = list(fields.values())
    if len(values) == 1 and isinstance(values[0], str):
        return values[0]
    return encode(fields).decode()
