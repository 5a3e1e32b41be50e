"""An item while it is being said: its parts and the text so far, and the shape that it has when it ends.

Knows one item; is unaware of other items, of ids and of indexes among items. Invariants: the parts of a family are
numbered densely in the order of opening; the text of what is closed is in its final shape alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from attache_core.events import items
from attache_core.events.growing_text import GrowingText
from attache_core.events.items import FAMILIES, Family
from attache_core.events.model_events import (
    Delta,
    ItemAdded,
    ItemDone,
    ItemEvent,
    ModelEvent,
    PartAdded,
    PartDone,
    PartKind,
)
from attache_core.json_codec import Json


@dataclass(slots=True)
class PartialPart:
    """One part."""

    index: int
    kind: PartKind
    said: GrowingText = field(default_factory=GrowingText)
    """Its text so far, while it is open."""
    annotations: list[Json] = field(default_factory=list)
    logprobs: list[Json] = field(default_factory=list)
    body: Json | None = None
    """Its final shape, once it is closed."""

    def close(self, body: Json) -> None:
        """It ends in this shape."""
        self.body = body
        self.said.replace("")

    def shape(self) -> Json:
        """Its final shape; while it is open, with the text so far."""
        if self.body is not None:
            return self.body
        return items.part_body(self.kind, self.said.value, self.annotations, self.logprobs)


@dataclass(slots=True)
class PartialItem:
    """One item between its `ItemAdded` and its `ItemDone`."""

    key: str
    start: Json
    """As it was announced."""
    parts: dict[Family, list[PartialPart]] = field(default_factory=lambda: {"content": [], "summary": []})
    said: GrowingText = field(default_factory=GrowingText)
    """The arguments or the input of a call, so far."""

    @property
    def type(self) -> str:
        """The item's type."""
        kind: str = self.start["type"]
        return kind

    def open_parts(self) -> Iterator[PartialPart]:
        """The parts that have not ended, in order, the summary's first."""
        for name in FAMILIES:
            yield from (part for part in self.parts[name] if part.body is None)

    def open_part(self, name: Family, index: int) -> PartialPart | None:
        """The part of that number, unless there is none or it has ended."""
        siblings = self.parts[name]
        part = siblings[index] if 0 <= index < len(siblings) else None
        return part if part is not None and part.body is None else None

    def add_part(self, kind: PartKind) -> PartialPart:
        """A new part behind the others of its family."""
        siblings = self.parts[items.family(kind)]
        part = PartialPart(len(siblings), kind)
        siblings.append(part)
        return part

    def take(self, event: ItemEvent) -> None:
        """An event of its life; the end of a text of its own, such as the arguments of an `mcp_call`, is kept."""
        if event.type.endswith(".done"):
            said = {name: value for name, value in event.data.items() if name in self.start}
            self.start = {**self.start, **said}

    def shape(self, status: str, item: Json | None = None) -> Json:
        """The item as it ends with what was said so far; `item` is the server's own final form of it."""
        said = self.start if item is None else item
        if self.type in items.TEXT_ITEMS:
            summary, content = ([part.shape() for part in self.parts[name]] for name in FAMILIES)
            return items.ended_text(said, self.start, status, content, summary)
        if self.type in items.CALL_TEXT:
            return items.ended_call(said, self.start, status, self.said.value)
        if item is not None or "status" not in said:
            return said
        return {**said, "status": items.cut_off_status(self.type) if status == "incomplete" else status}


def closing_events(item: PartialItem, status: str) -> list[ModelEvent]:
    """The ends that are owed to an item that stops here: of its open parts, then its own."""
    parts: list[ModelEvent] = [PartDone(item.key, part.index, part.shape()) for part in item.open_parts()]
    return [*parts, ItemDone(item.key, item.shape(status))]


def whole_item_events(key: str, item: Json) -> Iterator[ModelEvent]:
    """The life of an item that is known whole, from `ItemAdded` to `ItemDone`."""
    yield ItemAdded(key, items.begun(item))
    for name in FAMILIES if item.get("type") in items.TEXT_ITEMS else ():
        for index, body in enumerate(item.get(name) or []):
            kind = items.PART_KINDS.get(body["type"])
            if kind is not None:
                yield PartAdded(key, index, kind)
                yield Delta(key, index, items.DELTA_OF_PART[kind], body[items.text_field(kind)])
                yield PartDone(key, index, body)
    call_text = items.CALL_TEXT.get(str(item.get("type")))
    if call_text is not None and item[call_text]:
        yield Delta(key, None, call_text, item[call_text])
    yield ItemDone(key, item)
