"""Ends a stream of canonical events properly when its source breaks.

For a host that passes events on which it did not make: it can only tell the client what is owed (the ends of open
parts and items, one `response.failed`) if it knows what was said. Knows canonical events; is unaware of where they
come from. Invariants: observing a delta costs a few dictionary look-ups; what is retained is the events of open items
and the ends of closed ones, so it is bounded by whoever bounds the response.
"""

from __future__ import annotations

from attache_core.errors import AttacheError, UpstreamError
from attache_core.events.dialects.canonical import CanonicalReader
from attache_core.events.event import TERMINAL_TYPES, Event
from attache_core.events.sequencer import Sequencer
from attache_core.events.text_done import TextDone
from attache_core.json_codec import Json


class StreamWatch:
    """Follows one stream."""

    def __init__(self) -> None:
        self._response: Json | None = None
        self._number = -1
        self._items: dict[int, list[Event]] = {}
        """The events of each item by its output index; of one that is done, its first and its last."""
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
        index = data.get("output_index")
        if index is not None:
            said = self._items.setdefault(index, [])
            if event.type == "response.output_item.done":
                del said[1:]
            said.append(event)
        elif event.type == "response.created":
            self._response = data["response"]
        elif event.type in TERMINAL_TYPES:
            self._ended = True

    def fail(self, error: AttacheError) -> list[Event]:
        """The events that are owed, numbered from where the stream stopped.

        Empty when the stream has ended, and when it has not begun: then an HTTP error can still be sent.
        """
        if self._response is None or self._ended:
            return []
        self._ended = True
        passed = {_end(event) for said in self._items.values() for event in said}
        owed = [event for event in self._replayed(self._response).fail(error) if _end(event) not in passed]
        return [
            Event(event.type, {**event.data, "sequence_number": number})
            for number, event in enumerate(owed, self._number + 1)
        ]

    def _replayed(self, response: Json) -> Sequencer:
        """A sequencer in the state of whoever made the stream."""
        sequencer, reader = Sequencer(response, make_id=_no_id), CanonicalReader()
        sequencer.start()
        for index in sorted(self._items):
            for event in self._items[index]:
                _replay(event, reader, sequencer)
        return sequencer


def _end(event: Event) -> tuple[object, ...]:
    """What a stream ends only once. A stream may break between the end of a text and that of its part or item."""
    data = event.data
    return event.type, data.get("output_index"), data.get("content_index"), data.get("summary_index")


def _replay(event: Event, reader: CanonicalReader, sequencer: Sequencer) -> None:
    try:
        said = list(reader.read(event.data))
    except UpstreamError:
        # Whatever made the stream may have broken in the middle of making this event; nothing is owed for it.
        return
    for one in said:
        if not isinstance(one, TextDone):
            sequencer.emit(one)


def _no_id(item_type: str) -> str:
    """Items of a canonical stream have ids; one that has none keeps having none."""
    return ""
