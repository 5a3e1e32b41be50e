"""Input items as chat messages.

What a model said in one go (its reasoning, its text, its calls) is several items here and one assistant message there:
a message with calls must be followed at once by their outputs. Knows items; is unaware of parameters. Invariants:

- Nothing that is not understood is left out: an item without counterpart is refused by its type.
- Reasoning goes along with what followed it, and is left out where nothing did; of reasoning that is encrypted there is
  nothing to say.
- Text that a model said after its calls stands before them: a message has one order only.

Source: API reference, "messages" of the chat completion.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from attache_core import json_codec
from attache_core.events.custom_input import CUSTOM_INPUT
from attache_core.json_codec import Json
from attache_core.turn.chat_completions.content import chat_content, joined_content, text_part
from attache_core.turn.chat_completions.not_expressible import not_expressible

ReasoningField = Literal["reasoning_content", "reasoning"]
"""What servers call the reasoning of an assistant message."""

_SYSTEM_ROLES: Final = {"system": "system", "developer": "system", "user": "user"}
"""`developer` is a role that most chat templates do not have, and `system` means the same to those that do."""


def chat_messages(
    instructions: object, items: Sequence[Json], reasoning_fields: Sequence[ReasoningField]
) -> list[Json]:
    """The messages of a conversation.

    Raises:
        ClientError: an item, or a part of one, has no counterpart.
    """
    conversation = _Conversation(reasoning_fields)
    if instructions:
        conversation.say("system", str(instructions))
    for item in items:
        conversation.add(item)
    return conversation.end()


@dataclass(slots=True)
class _Assistant:
    """What the model said in one go."""

    reasoning: list[str] = field(default_factory=list)
    parts: list[Json] | None = None
    """None until it said something; empty when it said nothing aloud."""
    calls: list[Json] = field(default_factory=list)

    def message(self, reasoning_fields: Sequence[ReasoningField]) -> Json | None:
        """None when it only thought."""
        if self.parts is None and not self.calls:
            return None
        message: Json = {"role": "assistant", "content": None if self.parts is None else joined_content(self.parts)}
        if self.reasoning:
            message.update(dict.fromkeys(reasoning_fields, "\n\n".join(self.reasoning)))
        if self.calls:
            message["tool_calls"] = self.calls
        return message


class _Conversation:
    def __init__(self, reasoning_fields: Sequence[ReasoningField]) -> None:
        self._reasoning_fields = reasoning_fields
        self._messages: list[Json] = []
        self._assistant = _Assistant()

    def add(self, item: Json) -> None:
        kind = item.get("type") or ("message" if "role" in item else None)
        take = _ITEMS.get(str(kind))
        if take is None:
            raise not_expressible(f"An item of type '{kind}'", "input")
        take(self, item)

    def say(self, role: str, content: str | list[Json], **fields: object) -> None:
        """A message of somebody other than the model."""
        self._end_assistant()
        self._messages.append({"role": role, **fields, "content": content})

    def end(self) -> list[Json]:
        self._end_assistant()
        return self._messages

    def take_message(self, item: Json) -> None:
        role = str(item.get("role"))
        content = chat_content(item.get("content"))
        if role != "assistant":
            self.say(_SYSTEM_ROLES.get(role, role), content)
            return
        if self._assistant.parts is not None and not self._assistant.calls:
            self._end_assistant()
        parts = [text_part(content)] if isinstance(content, str) and content else content
        self._assistant.parts = [*(self._assistant.parts or []), *parts]

    def take_reasoning(self, item: Json) -> None:
        if self._assistant.parts is not None and not self._assistant.calls:
            self._end_assistant()
        text = "\n\n".join(part["text"] for part in item.get("content") or item.get("summary") or ())
        if text:
            self._assistant.reasoning.append(text)

    def take_function_call(self, item: Json) -> None:
        self._call(item, item.get("arguments"))

    def take_custom_call(self, item: Json) -> None:
        self._call(item, json_codec.encode({CUSTOM_INPUT: item.get("input")}).decode())

    def take_output(self, item: Json) -> None:
        self.say("tool", chat_content(item.get("output")), tool_call_id=item.get("call_id"))

    def _call(self, item: Json, arguments: object) -> None:
        function = {"name": item.get("name"), "arguments": arguments}
        self._assistant.calls.append({"id": item.get("call_id"), "type": "function", "function": function})

    def _end_assistant(self) -> None:
        message = self._assistant.message(self._reasoning_fields)
        if message is not None:
            self._messages.append(message)
        self._assistant = _Assistant()


_ITEMS: Final[dict[str, Callable[[_Conversation, Json], None]]] = {
    "message": _Conversation.take_message,
    "reasoning": _Conversation.take_reasoning,
    "function_call": _Conversation.take_function_call,
    "function_call_output": _Conversation.take_output,
    "custom_tool_call": _Conversation.take_custom_call,
    "custom_tool_call_output": _Conversation.take_output,
}
