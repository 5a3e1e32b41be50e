"""Input items as chat messages.

What a model said in one go (its reasoning, its text, its calls) is several items here and one assistant message there:
a message with calls must be followed at once by their outputs. Knows items; is unaware of parameters. Invariants:

- Nothing that is not understood is left out: an item without counterpart is refused by its type. Of calls and their
  outputs, those of functions have one.
- Reasoning goes along with what followed it, and is left out where nothing did; of reasoning that is encrypted there is
  nothing to say.
- Text that a model said after its calls stands before them: a message has one order only.
- The outputs of calls follow the message with the calls, whatever stood between: strict servers refuse anything else.
- The instructions and the system messages in front are one message: there are templates that refuse a second one, or
  leave it out without a word.

Source: API reference, "messages" of the chat completion.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from attache_core.json_codec import Json
from attache_core.tools.builtin import BUILTIN_TELLERS
from attache_core.turn.chat_completions.content import chat_content, content_parts, joined_content
from attache_core.turn.chat_completions.not_expressible import USE_TOOL_DISPATCH, not_expressible
from attache_core.turn.chat_completions.options import ChatRequestOptions, ReasoningField

_SYSTEM_ROLES: Final = ("system", "developer")
"""`developer` is a role that most chat templates do not have, and `system` means the same to those that do."""


def chat_messages(instructions: object, items: Sequence[Json], options: ChatRequestOptions) -> list[Json]:
    """The messages of a conversation.

    Raises:
        ClientError: an item, or a part of one, has no counterpart.
    """
    conversation = _Conversation(items, options)
    if instructions:
        conversation.say_as_system(str(instructions))
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
    def __init__(self, items: Sequence[Json], options: ChatRequestOptions) -> None:
        self._options = options
        self._outputs = _outputs(items)
        """What is still to be told, by `call_id`."""
        self._messages: list[Json] = []
        self._assistant = _Assistant()

    def add(self, item: Json) -> None:
        kind = str(item.get("type") or ("message" if "role" in item else None))
        take = _ITEMS.get(kind)
        if take is None:
            advice = USE_TOOL_DISPATCH if kind in BUILTIN_TELLERS else ""
            raise not_expressible(f"An item of type '{kind}'", "input", advice)
        take(self, item)

    def say(self, role: str, content: str | list[Json]) -> None:
        """A message of somebody other than the model."""
        self._end_assistant()
        self._messages.append({"role": role, "content": content})

    def say_as_system(self, content: str | list[Json]) -> None:
        """A system message: a part of the first message for as long as nobody else said anything."""
        self._end_assistant()
        if not self._messages:
            self.say("system", content)
        elif len(self._messages) == 1 and self._messages[0]["role"] == "system":
            self._messages[0]["content"] = _paragraphs(self._messages[0]["content"], content)
        else:
            self.say(self._options.late_system_role, content)

    def end(self) -> list[Json]:
        self._end_assistant()
        return self._messages

    def take_message(self, item: Json) -> None:
        role = str(item.get("role"))
        content = chat_content(item.get("content"))
        if role in _SYSTEM_ROLES:
            self.say_as_system(content)
            return
        if role != "assistant":
            self.say(role, content)
            return
        if self._assistant.parts is not None and not self._assistant.calls:
            self._end_assistant()
        self._assistant.parts = [*(self._assistant.parts or []), *content_parts(content)]

    def take_reasoning(self, item: Json) -> None:
        if self._assistant.parts is not None and not self._assistant.calls:
            self._end_assistant()
        text = "\n\n".join(part["text"] for part in item.get("content") or item.get("summary") or ())
        if text:
            self._assistant.reasoning.append(text)

    def take_call(self, item: Json) -> None:
        if item.get("namespace") is not None:
            raise not_expressible("A call of a function in a namespace", "input", USE_TOOL_DISPATCH)
        function = {"name": item.get("name"), "arguments": str(item.get("arguments"))}
        self._assistant.calls.append({"id": item.get("call_id"), "type": "function", "function": function})

    def take_output(self, item: Json) -> None:
        self._end_assistant()
        waiting = self._outputs[item.get("call_id")]
        if waiting and waiting[0] is item:
            self._tell(waiting.popleft())

    def _tell(self, output: Json) -> None:
        content = chat_content(output.get("output"))
        self._messages.append({"role": "tool", "tool_call_id": output.get("call_id"), "content": content})

    def _end_assistant(self) -> None:
        said, self._assistant = self._assistant, _Assistant()
        message = said.message(self._options.reasoning_fields)
        if message is not None:
            self._messages.append(message)
        for call in said.calls:
            if waiting := self._outputs.get(call["id"]):
                self._tell(waiting.popleft())


def _outputs(items: Sequence[Json]) -> dict[object, deque[Json]]:
    """The outputs of calls by `call_id`, each in order."""
    outputs: dict[object, deque[Json]] = {}
    for item in items:
        if item.get("type") == "function_call_output":
            outputs.setdefault(item.get("call_id"), deque()).append(item)
    return outputs


def _paragraphs(first: str | list[Json], second: str | list[Json]) -> str | list[Json]:
    if isinstance(first, str) and isinstance(second, str):
        return "\n\n".join(filter(None, (first, second)))
    return [*content_parts(first), *content_parts(second)]


_ITEMS: Final[dict[str, Callable[[_Conversation, Json], None]]] = {
    "message": _Conversation.take_message,
    "reasoning": _Conversation.take_reasoning,
    "function_call": _Conversation.take_call,
    "function_call_output": _Conversation.take_output,
}
