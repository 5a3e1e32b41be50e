"""What the model said: tolerant events in, the strict grammar of `model_events` out, and the items of one round.

Knows the items of one answer; is unaware of servers' dialects, of ids and indexes, and of what is done with a call.
Invariants:

- What comes out obeys the grammar whatever comes in; the only exception raised is UpstreamError.
- A message or reasoning item ends when the next item begins, and so does a function call whose arguments are whole
  by then: llama.cpp ends all items at the very end, and clients expect one at a time. Other calls may overlap,
  because servers do interleave them and say which is which; nothing that was said of a call is lost.
- The last word counts: the text of an end wins over the joined deltas. Where it goes on from them, one more delta
  brings the rest; where it contradicts them, the ends and the item follow it, and the deltas were already shown. An
  end without text does not take back what was said, and arguments that differ from the deltas in their spelling alone
  (see `same_json`) stay as they were streamed.
- A call is announced once its function's name is known.
- A part that the API has not in such an item is left out, with a line in the log.
- A message of white space beside calls is not shown (see `blank_messages`).
- A streamed and a plain answer of the same content make the same items.
- What is retained is bounded, wherever the stream was cut.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence

from attache_core.events import items
from attache_core.events.blank_messages import BlankMessages
from attache_core.events.item_assembly import ByteBudget, ItemAssembly
from attache_core.events.model_events import (
    AnnotationAdded,
    Delta,
    Finished,
    ItemAdded,
    ItemDone,
    ItemEvent,
    ModelEvent,
    PartAdded,
    PartDone,
    PartKind,
    Started,
)
from attache_core.events.text_done import SaidEvent, TextDone
from attache_core.json_codec import Json

DEFAULT_MAX_BYTES = 16 * 1024 * 1024
"""What one round's answer may come to: its text and, where that is more, the JSON of its items."""

_MAX_CHARACTER_BYTES = 4
_OPENING_BYTES = 4096
"""More than an item and a part come to that a delta opens."""

CUT_OFF: Json = {"code": "server_error", "message": "The inference server ended its answer before it was complete."}
"""The error of an answer without an end."""


def new_call_id() -> str:
    """A random `call_id` for a call to which the server gave none of its own."""
    return f"call_{secrets.token_hex(12)}"


class Accumulator:
    """One round's answer. Feed it all that a dialect says, then `close` it."""

    def __init__(
        self,
        *,
        max_bytes: int = DEFAULT_MAX_BYTES,
        budget: ByteBudget | None = None,
        make_call_id: Callable[[], str] = new_call_id,
    ) -> None:
        """`budget` is for an answer that shares its bytes with others, instead of `max_bytes` of its own."""
        self._budget = ByteBudget(max_bytes) if budget is None else budget
        self._make_call_id = make_call_id
        self._items: dict[str, ItemAssembly] = {}
        self._open: dict[str, ItemAssembly] = {}
        self._begun_last: ItemAssembly | None = None
        self._call_ids: set[str] = set()
        self._started = False
        self._finished: Finished | None = None
        self._blank_messages = BlankMessages()
        self._shown: dict[str, Json | None] = {}

    @property
    def finished(self) -> Finished | None:
        """How the round ended; None while it goes on."""
        return self._finished

    @property
    def items(self) -> list[tuple[str, Json]]:
        """Key and final shape of the items that have ended, in the order in which they began."""
        return [(key, item) for key, item in self._shown.items() if item is not None]

    def portions(self, event: SaidEvent) -> Sequence[SaidEvent]:
        """What to feed for `event`, one after the other, so that all that fits comes out before what does not."""
        if not isinstance(event, Delta) or not event.pieces:
            return (event,)
        most = len(event.text) * _MAX_CHARACTER_BYTES + _OPENING_BYTES
        return (event,) if self._budget.has_room(most) else event.each()

    def feed(self, event: SaidEvent) -> list[ModelEvent]:
        """The strict events that follow from `event`; none after `Finished`.

        Raises:
            UpstreamError: the answer is larger than `max_bytes`, goes on with a text that it had left for the next
                item, or completes a call that names no tool.
        """
        if self._finished is not None:
            return []
        out: list[ModelEvent] = []
        if isinstance(event, Delta):
            self._take_part(event, out)
        else:
            self._take(event, out)
        return self._show(out)

    def close(self) -> list[ModelEvent]:
        """The answer ended. Without a `Finished` it was cut off: open items are incomplete, and the round failed."""
        return self.feed(Finished("failed", error=CUT_OFF))

    def _take(self, event: SaidEvent, out: list[ModelEvent]) -> None:
        match event:
            case Started():
                if not self._started:
                    out.append(event)
                self._started = True
            case ItemAdded():
                self._item(event.key, event.item, out)
            case ItemEvent():
                item = self._open.get(event.key)
                if item is not None and event.type.startswith(f"response.{item.type}"):
                    out.append(event)
            case ItemDone():
                item = self._item(event.key, event.item, out)
                item.done(event.item, out)
                self._open.pop(item.key, None)
            case Finished():
                self._finish(event, out)
            case _:
                self._take_part(event, out)

    def _take_part(
        self, event: Delta | TextDone | PartAdded | PartDone | AnnotationAdded, out: list[ModelEvent]
    ) -> None:
        """What says nothing opens no item: servers end messages that never were."""
        match event:
            case Delta():
                if event.text:
                    self._item_of(event, out).delta(event, out)
            case TextDone():
                if event.text or event.key in self._open:
                    self._item_of(event, out).text_done(event, out)
            case PartAdded():
                self._item(event.key, _owner(event.kind), out).part_added(event, out)
            case PartDone():
                kind = items.PART_KINDS.get(str(event.body.get("type")))
                if kind is not None and (event.key in self._open or event.body.get(items.text_field(kind))):
                    self._item(event.key, _owner(kind), out).part_done(kind, event, out)
            case AnnotationAdded():
                self._item(event.key, _owner("output_text"), out).annotation(event, out)

    def _item_of(self, event: Delta | TextDone, out: list[ModelEvent]) -> ItemAssembly:
        owner = items.ITEM_OF_DELTA[event.kind]
        item = self._items.get(event.key)
        return item if item is not None and item.type == owner else self._item(event.key, {"type": owner}, out)

    def _item(self, key: str, given: Json, out: list[ModelEvent]) -> ItemAssembly:
        """The item of that key and type, opened now unless it is known."""
        known = self._items.get(key)
        while known is not None and known.type != given["type"]:
            # A server that says one number of two items: what it says of another type is of another item.
            key = f"{key}/{given['type']}"
            known = self._items.get(key)
        return known or self._open_item(key, given, out)

    def _open_item(self, key: str, given: Json, out: list[ModelEvent]) -> ItemAssembly:
        self._leave(out)
        start = items.begun(given)
        if start["type"] in items.CALL_TEXT:
            start["call_id"] = self._unique_call_id(start["call_id"])
        item = ItemAssembly(key, start, self._budget, out)
        self._items[key] = self._open[key] = self._begun_last = item
        return item

    def _leave(self, out: list[ModelEvent]) -> None:
        """No other item but the one begun last can be one that ends with the beginning of the next."""
        last = self._begun_last
        if last is not None and not last.ended and last.is_whole:
            last.left = True
            last.end("completed", out)
            del self._open[last.key]

    def _unique_call_id(self, call_id: str) -> str:
        while not call_id or call_id in self._call_ids:
            call_id = self._make_call_id()
        self._call_ids.add(call_id)
        return call_id

    def _finish(self, event: Finished, out: list[ModelEvent]) -> None:
        for item in self._open.values():
            item.end("completed" if event.status == "completed" else "incomplete", out)
        self._open.clear()
        self._finished = event
        out.append(event)

    def _show(self, out: list[ModelEvent]) -> list[ModelEvent]:
        shown = self._blank_messages.feed(out)
        for event in shown:
            if isinstance(event, ItemAdded):
                self._shown[event.key] = None
            elif isinstance(event, ItemDone):
                self._shown[event.key] = event.item
        return shown


def _owner(kind: PartKind) -> Json:
    return {"type": items.ITEM_OF_DELTA[items.DELTA_OF_PART[kind]]}
