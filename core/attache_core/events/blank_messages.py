"""Messages of nothing but white space, which some servers send before and between tool calls.

OpenAI's API sends no such item, and a delta once shown cannot be unshown. So a message is held back until its first
text that is not white space; that costs no latency that a reader could see. One that ends blank is left out when
another item follows it or a call came before it, and shown when it is all the answer there is.

Knows the strict event stream of one round; is unaware of how it was made. Invariant: deltas that are held back come
out as one, so that a text held back takes the memory of its characters, however it was cut.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from attache_core.events import items
from attache_core.events.growing_text import GrowingText
from attache_core.events.model_events import Delta, Finished, ItemAdded, ModelEvent, PartDone, Started


class BlankMessages:
    """A stage behind the accumulator. Feed it strict events; what comes out is strict again."""

    def __init__(self) -> None:
        self._key: str | None = None
        self._held: list[ModelEvent] = []
        self._blank: Delta | None = None
        """The first of the deltas held back since the last of `_held`; their text is in `_blank_text`."""
        self._blank_text = GrowingText()
        self._called = False

    def feed(self, events: list[ModelEvent]) -> list[ModelEvent]:
        """The events that may be shown now."""
        if self._key is None and len(events) == 1 and isinstance(events[0], Delta):
            return events
        return [shown for event in events for shown in self._take(event)]

    def _take(self, event: ModelEvent) -> Iterable[ModelEvent]:
        if isinstance(event, ItemAdded):
            return self._begin(event)
        if isinstance(event, Finished):
            return [*self._release(show=not self._called), event]
        if isinstance(event, Started) or event.key != self._key:
            return (event,)
        if isinstance(event, Delta) and event.pieces:
            return [shown for one in event.each() for shown in self._take(one)]
        if isinstance(event, Delta) and not event.text.strip() and not event.extra:
            self._hold_blank(event)
            return ()
        self._settle_blank()
        self._held.append(event)
        return self._release(show=True) if _says_something(event) else ()

    def _begin(self, event: ItemAdded) -> Iterable[ModelEvent]:
        self._release(show=False)
        if event.item["type"] == "message":
            self._key = event.key
            self._held.append(event)
            return ()
        self._called = self._called or event.item["type"] != "reasoning"
        return (event,)

    def _hold_blank(self, event: Delta) -> None:
        if self._blank is not None and self._blank.part != event.part:
            self._settle_blank()
        self._blank = self._blank or event
        self._blank_text.add(event.text)

    def _settle_blank(self) -> None:
        if self._blank is not None:
            self._held.append(replace(self._blank, text=self._blank_text.value))
            self._blank, self._blank_text = None, GrowingText()

    def _release(self, *, show: bool) -> list[ModelEvent]:
        self._settle_blank()
        held, self._held, self._key = self._held, [], None
        return held if show else []


def _says_something(event: ModelEvent) -> bool:
    if isinstance(event, Delta):
        return bool(event.text.strip())
    if isinstance(event, PartDone):
        # The end wins over the deltas, so it may say something where they did not. A refusal always does.
        kind = items.PART_KINDS[event.body["type"]]
        return kind == "refusal" or bool(str(event.body[items.text_field(kind)]).strip())
    return False
