"""Ends a stream of canonical events properly when its source breaks.

For a host that passes events on which it did not make: it can only tell the client what is owed (the ends of open
parts and items, one `response.failed`) if it knows what was said. Knows canonical events; is unaware of where they
come from. Invariants: observing a delta costs a few dictionary look-ups; what is retained is the texts of open parts
and the ends of closed ones and of closed items, so it follows the size of the response, however that was cut into
deltas.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from attache_core.errors import AttacheError, UpstreamError
from attache_core.events import items
from attache_core.events.dialects.canonical import CanonicalReader
from attache_core.events.dialects.event_types import DELTAS, ITEM_EVENTS, PARTS, TEXT_DONES
from attache_core.events.event import TERMINAL_TYPES, Event
from attache_core.events.growing_text import GrowingText
from attache_core.events.model_events import DeltaKind, Finished
from attache_core.events.sequencer import Sequencer
from attache_core.events.text_done import TextDone
from attache_core.json_codec import Json

_ITEM_ADDED: Final = "response.output_item.added"
_ITEM_DONE: Final = "response.output_item.done"
_ANNOTATION: Final = "response.output_text.annotation.added"

_PARTS_ADDED: Final = {f"{prefix}added": index for prefix, index in PARTS.items()}
_PARTS_DONE: Final = {f"{prefix}done": index for prefix, index in PARTS.items()}
_INDEX_OF_DELTA: Final = {kind: index or "" for kind, (_, index) in DELTAS.items()}
_INDEX: Final = {
    **_PARTS_ADDED,
    **_PARTS_DONE,
    **{kind: index or "" for kind, (_, index, _) in TEXT_DONES.items()},
    _ANNOTATION: "content_index",
}
"""Event type to the field that holds the part's number; the text of a call is in no part, and the field is ""."""

_DELTA_TYPES: Final[dict[DeltaKind, str]] = {kind: delta for delta, (kind, _) in DELTAS.items()}

_Place = tuple[object, str, object]
"""Where a text stands: output index, the field that numbers its part (as in `_INDEX`), and the number."""

_End = tuple[object, ...]


class _Text(GrowingText):
    """A text that is being said, of a part or of a call.

    Attributes:
        delta_type: the event type of its deltas.
        end: what identifies its own end, once that has passed; that of its part or item may still be owed.
    """

    __slots__ = ("delta_type", "end")

    def __init__(self, delta_type: str) -> None:
        super().__init__()
        self.delta_type = delta_type
        self.end: _End | None = None


@dataclass(slots=True)
class _Item:
    """What is kept of one item.

    Attributes:
        events: its ends, and while it is open those of its parts and their annotations; no texts.
        parts: where its text or its parts stand, those that have ended included; empty once it is done.
    """

    events: list[Event]
    parts: set[_Place] = field(default_factory=set)


class StreamWatch:
    """Follows one stream."""

    def __init__(self) -> None:
        self._response: Json | None = None
        self._number = -1
        self._items: dict[int, _Item] = {}
        """By output index."""
        self._texts: dict[_Place, _Text] = {}
        """Those that may go on."""
        self._ended = False

    @property
    def started(self) -> bool:
        """Whether `response.created` has passed."""
        return self._response is not None

    @property
    def ended(self) -> bool:
        """Whether a terminal event has passed, or `fail` was called."""
        return self._ended

    def observe(self, event: Event) -> None:
        """Take note of one event that was passed on."""
        data = event.data
        self._number = data.get("sequence_number", self._number)
        name = _INDEX_OF_DELTA.get(event.type)
        if name is None:
            self._observe_rarer(event)
            return
        text = self._texts.get((data.get("output_index"), name, data.get(name)))
        if text is not None:
            text.add(data["delta"])

    def fail(self, error: AttacheError) -> list[Event]:
        """The events that are owed, numbered from where the stream stopped.

        Empty when the stream has ended, and when it has not begun: then an HTTP error can still be sent.
        """
        if self._response is None or self._ended:
            return []
        self._ended = True
        passed = {_end(event) for item in self._items.values() for event in item.events}
        passed |= {text.end for text in self._texts.values() if text.end is not None}
        owed = [event for event in self._replayed(self._response).fail(error) if _end(event) not in passed]
        return [
            Event(event.type, {**event.data, "sequence_number": number})
            for number, event in enumerate(owed, self._number + 1)
        ]

    def cut_short(self) -> Json | None:
        """The response with what is open closed as incomplete, for a stream that nobody reads any more.

        None when it has not begun.
        """
        if self._response is None:
            return None
        *_, last = self._replayed(self._response).finish(Finished("incomplete"), completed_at=0)
        response: Json = last.data["response"]
        return response

    def _observe_rarer(self, event: Event) -> None:
        kind, data = event.type, event.data
        index = data.get("output_index")
        if index is not None:
            self._observe_item(index, event)
        elif kind == "response.created":
            self._response = data["response"]
        elif kind in TERMINAL_TYPES:
            self._ended = True

    def _observe_item(self, index: int, event: Event) -> None:
        item = self._items.get(index)
        if event.type == _ITEM_DONE:
            for place in item.parts if item is not None else ():
                self._texts.pop(place, None)
            self._items[index] = _Item([*(item.events[:1] if item is not None else ()), event])
        elif item is not None:
            self._observe_part(item, index, event)
        elif event.type == _ITEM_ADDED:
            item = self._items[index] = _Item([event])
            call = items.CALL_TEXT.get(_type_of(event.data.get("item")))
            if call is not None:
                self._begin_text(item, (index, "", None), call)

    def _observe_part(self, item: _Item, index: int, event: Event) -> None:
        """Keep what says something of a part that is open, or opens one: nothing else can be owed."""
        kind, data = event.type, event.data
        name = _INDEX.get(kind, "")
        place = (index, name, data.get(name))
        text = self._texts.get(place)
        if kind in _PARTS_ADDED:
            part = items.PART_KINDS.get(_type_of(data.get("part")))
            if part is not None and place not in item.parts:
                self._begin_text(item, place, items.DELTA_OF_PART[part])
                item.events.append(event)
        elif kind in ITEM_EVENTS and kind.endswith(".done"):
            item.events.append(event)
        elif text is None:
            return
        elif kind in TEXT_DONES:
            text.end = _end(event)
        elif kind in _PARTS_DONE:
            del self._texts[place]
            item.events.append(event)
        elif kind == _ANNOTATION:
            item.events.append(event)

    def _begin_text(self, item: _Item, place: _Place, kind: DeltaKind) -> None:
        item.parts.add(place)
        self._texts[place] = _Text(_DELTA_TYPES[kind])

    def _replayed(self, response: Json) -> Sequencer:
        """A sequencer in the state of whoever made the stream, told each text as one delta."""
        sequencer, reader = Sequencer(response, make_id=_no_id), CanonicalReader()
        sequencer.start()
        for _, item in sorted(self._items.items()):
            for event in item.events:
                _replay(event.data, reader, sequencer)
        for (index, name, number), text in self._texts.items():
            delta: Json = {"type": text.delta_type, "output_index": index, "delta": text.value}
            _replay({**delta, name: number} if name else delta, reader, sequencer)
        return sequencer


def _type_of(value: object) -> str:
    return str(value.get("type")) if isinstance(value, dict) else ""


def _end(event: Event) -> _End:
    """What a stream ends only once. A stream may break between the end of a text and that of its part or item."""
    data = event.data
    return event.type, data.get("output_index"), data.get("content_index"), data.get("summary_index")


def _replay(data: Json, reader: CanonicalReader, sequencer: Sequencer) -> None:
    try:
        said = list(reader.read(data))
    except UpstreamError:
        # Whatever made the stream may have broken in the middle of making this event; nothing is owed for it.
        return
    for one in said:
        if not isinstance(one, TextDone):
            sequencer.emit(one)


def _no_id(item_type: str) -> str:
    """Items of a canonical stream have ids; one that has none keeps having none."""
    return ""
