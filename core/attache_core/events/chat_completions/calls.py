"""Tool calls as a chat stream says them: by `index`, in pieces, in as many ways as there are servers.

Knows which call an entry of `tool_calls` belongs to; is unaware of text. Rules, because servers differ:

- `index` tells calls apart; where it is missing, the id does; where both are, a name after arguments begins a call.
- An entry of a known index is of another call when it brings another id together with a name: there are servers that
  say index 0 of every call. Another id alone is the same call: there are servers that make up an id for each chunk.
- A name may come in pieces until the arguments begin, and may be repeated whole. So a call is announced with its first
  argument, or when anything else is said.
- A call ends where something else is said, if its arguments are whole by then; otherwise they may go on among others',
  and it ends with the answer.
- A call without arguments may come with an empty text for them: it has an empty object, because clients read JSON.

Invariant: at most one call waits to be announced. Source: API reference, "The chat completion chunk object".
"""

from __future__ import annotations

from dataclasses import dataclass, field

from attache_core.errors import UpstreamError
from attache_core.events.chat_completions.fields import list_of, not_an_answer, object_of, text_of
from attache_core.events.error_codes import BAD_ANSWER
from attache_core.events.growing_text import GrowingText
from attache_core.events.items import as_text
from attache_core.events.json_texts import is_json_object
from attache_core.events.model_events import Delta, ItemAdded, ItemDone
from attache_core.events.text_done import SaidEvent
from attache_core.json_codec import Json
from attache_core.types.shape import MAX_ID_CHARS

MAX_NAME_CHARS = 1024
"""How long a name may become before its call is announced; no tool's is longer than 64."""


@dataclass(slots=True)
class _Call:
    key: str
    id: str = ""
    name: str = ""
    arguments: GrowingText = field(default_factory=GrowingText)

    @property
    def item(self) -> Json:
        # A longer id could not be sent back: without one, the call gets an id of this gateway's.
        call_id = self.id if len(self.id) <= MAX_ID_CHARS else ""
        return {"type": "function_call", "call_id": call_id, "name": self.name}


class ChatCalls:
    """The calls of one answer."""

    def __init__(self) -> None:
        self._by_index: dict[int, _Call] = {}
        self._by_id: dict[str, _Call] = {}
        self._open: dict[str, _Call] = {}
        """By key, in the order in which they began."""
        self._count = 0
        self._last: _Call | None = None
        """The call that is being said; it has ended when something else was."""
        self._waits = False
        """Whether the last call is not announced yet, because more of its name may come."""

    def read(self, entries: object, *, whole: bool) -> list[SaidEvent]:
        """What `tool_calls` says; `whole` in an answer that is not streamed, where each entry is a call.

        Raises:
            UpstreamError: it is not a list of calls, or the name of one does not end.
        """
        said: list[SaidEvent] = []
        for place, value in enumerate(list_of(entries)):
            entry = object_of(value)
            function = object_of(entry.get("function"))
            name, call_id = text_of(function.get("name")), text_of(entry.get("id"))
            call = None if whole else self._known(entry.get("index"), call_id, name, place)
            if call is None:
                said += self.leave()
                call = self._begin(entry.get("index"))
            self._name(call, call_id, name)
            said += self._arguments(call, function.get("arguments"))
        return said

    @property
    def waits(self) -> bool:
        """Whether a call is to be announced before anything else is said."""
        return self._waits

    def leave(self) -> list[SaidEvent]:
        """Another item begins: announce the call that waits, and end it if it is whole."""
        call = self._last
        if call is None or call.key not in self._open:
            return []
        said = self._announce(call)
        return [*said, *self._done(call)] if is_json_object(call.arguments.value) else said

    def end(self, *, complete: bool) -> list[SaidEvent]:
        """The answer is over: announce the call that waits, and give out what is still owed of the others.

        None of them is ended: that is for whoever knows how the answer ended.
        """
        said = [] if self._last is None else self._announce(self._last)
        if complete:
            empty = [call for call in self._open.values() if not call.arguments.value.strip()]
            said += [Delta(call.key, None, "arguments", "{}") for call in empty]
        return said

    def _announce(self, call: _Call) -> list[SaidEvent]:
        if not self._waits or call is not self._last:
            return []
        self._waits = False
        return [ItemAdded(call.key, call.item)]

    def _done(self, call: _Call) -> list[SaidEvent]:
        del self._open[call.key]
        call.arguments.replace("")
        return [ItemDone(call.key, call.item)]

    def _known(self, index: object, call_id: str, name: str, place: int) -> _Call | None:
        """The call that an entry goes on with; None when it begins one."""
        if type(index) is int:
            known = self._by_index.get(index)
            return None if known is not None and name and self._is_another(known, call_id) else known
        if call_id:
            return self._by_id.get(call_id) or (None if name else self._last)
        last = self._last
        begins = name and (last is None or last.arguments or last.key not in self._open or place > 0)
        return None if begins else last

    def _is_another(self, known: _Call, call_id: str) -> bool:
        """Whether a name at the index of a known call is of another call."""
        if call_id and known.id:
            return call_id != known.id
        return known.key not in self._open

    def _begin(self, index: object) -> _Call:
        call = _Call(f"call_{self._count}")
        self._count += 1
        if type(index) is int:
            self._by_index[index] = call
        self._open[call.key] = self._last = call
        self._waits = True
        return call

    def _name(self, call: _Call, call_id: str, name: str) -> None:
        if call is not self._last or not self._waits:
            return
        if call_id and not call.id:
            call.id = call_id
            self._by_id.setdefault(call_id, call)
        if name != call.name:
            call.name += name
        if len(call.name) > MAX_NAME_CHARS:
            raise UpstreamError("The inference server called a tool by a name that does not end.", code=BAD_ANSWER)

    def _arguments(self, call: _Call, given: object) -> list[SaidEvent]:
        if given is not None and not isinstance(given, (str, dict)):
            raise not_an_answer()
        arguments = as_text(given)
        if not arguments or call.key not in self._open:
            return []
        announced = self._announce(call)
        call.arguments.add(arguments)
        return [*announced, Delta(call.key, None, "arguments", arguments)]
