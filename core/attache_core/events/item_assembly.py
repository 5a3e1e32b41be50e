"""One item as a server says it, put in order: tolerant events in, strict ones out.

Knows the parts and the text of one item, and which of them the server means by its own part numbers; is unaware of
the other items of the answer. Its rules are the accumulator's. Part numbers of a server only tell its parts apart:
ours are dense.
"""

from __future__ import annotations

import structlog

from attache_core import json_codec
from attache_core.errors import UpstreamError
from attache_core.events import items
from attache_core.events.error_codes import BAD_ANSWER, OVER_LIMIT
from attache_core.events.growing_text import GrowingText
from attache_core.events.items import Family
from attache_core.events.json_texts import same_json
from attache_core.events.model_events import (
    AnnotationAdded,
    Delta,
    DeltaKind,
    ItemAdded,
    ItemDone,
    ModelEvent,
    PartAdded,
    PartDone,
    PartKind,
)
from attache_core.events.partial_item import PartialItem, PartialPart
from attache_core.events.text_done import TextDone
from attache_core.json_codec import Json

_log = structlog.get_logger(__name__)

EMPTY_BYTES = 1024
"""What an item or a part counts for beside its text, about what it takes in memory, so that empty ones are bounded."""


class ByteBudget:
    """How much of an answer may be retained; `what` it is called in the error of one that is larger."""

    def __init__(self, max_bytes: int, *, what: str = "The inference server's answer") -> None:
        self._max_bytes = max_bytes
        self._what = what
        self._spent = 0

    def has_room(self, size: int) -> bool:
        """Whether so much more may be retained."""
        return self._spent + size <= self._max_bytes

    def spend(self, size: int) -> None:
        """Raises UpstreamError when the answer has become larger than allowed."""
        self._spent += size
        if self._spent > self._max_bytes:
            raise UpstreamError(f"{self._what} is larger than {self._max_bytes} bytes.", code=OVER_LIMIT)


class ItemAssembly:
    """One item between its first event and its end. What follows from an event is appended to `out`.

    Attributes:
        key: the item's key in the events that come out.
        type: the item's type.
        ended: whether its end came out; later events say nothing new.
        left: whether it was ended because the next item began; then more text of it is an error.
    """

    def __init__(self, key: str, start: Json, budget: ByteBudget, out: list[ModelEvent]) -> None:
        self.key = key
        self.type: str = start["type"]
        self.ended = False
        self.left = False
        self._item = PartialItem(key, start)
        self._said: dict[tuple[Family, int], PartialPart] = {}
        self._part_begun: PartialPart | None = None
        """The part begun last: no other one can be open."""
        self._call_text = items.CALL_TEXT.get(self.type)
        self._announced = self._call_text is None or bool(start["name"])
        self._budget = budget
        self._size = 0
        self._spend(len(json_codec.encode(start)) + EMPTY_BYTES)
        if self._announced:
            out.append(ItemAdded(key, start))

    @property
    def is_whole(self) -> bool:
        """Whether nothing more can be said of it once another item begins."""
        if self._call_text != "arguments":
            return self.type in items.TEXT_ITEMS
        return self._announced and self._item.said.value.endswith("}") and _is_json(self._item.said.value)

    def delta(self, event: Delta, out: list[ModelEvent]) -> None:
        """More text."""
        if self.ended:
            self._refuse_more()
            return
        text, index = event.text, None
        if self._call_text is not None:
            self._item.said.add(text)
        else:
            part = self._part(items.PART_OF_DELTA[event.kind], event.part or 0, out)
            if part.body is not None:
                return
            part.said.add(text)
            index = part.index
            if event.extra:
                logprobs = _objects(event.extra.get("logprobs"))
                part.logprobs += logprobs
                self._spend(sum(len(json_codec.encode(entry)) + 1 for entry in logprobs))
        self._spend(len(text) if text.isascii() else _size(text))
        if self._announced:
            same = event.part == index and event.key == self.key
            out.append(event if same else Delta(self.key, index, event.kind, text, event.extra, event.pieces))

    def text_done(self, event: TextDone, out: list[ModelEvent]) -> None:
        """All of a text."""
        if self.ended:
            return
        if self._call_text is not None:
            self._announce(event.name, out)
            self._settle(self._item.said, event.text, None, event.kind, out)
        else:
            part = self._part(items.PART_OF_DELTA[event.kind], event.part or 0, out)
            if part.body is None:
                self._settle(part.said, event.text, part.index, event.kind, out)

    def part_added(self, event: PartAdded, out: list[ModelEvent]) -> None:
        """A part begins; one with the number of a part that has ended is another part."""
        known = self._said.get((items.family(event.kind), event.part))
        if not self.ended and (known is None or known.kind != event.kind or known.body is not None):
            self._open_part(event.kind, event.part, out)

    def annotation(self, event: AnnotationAdded, out: list[ModelEvent]) -> None:
        """A citation."""
        if self.ended:
            return
        part = self._part("output_text", event.part, out)
        if part.body is None:
            part.annotations.append(event.annotation)
            self._spend(len(json_codec.encode(event.annotation)))
            out.append(AnnotationAdded(self.key, part.index, event.annotation))

    def part_done(self, kind: PartKind, event: PartDone, out: list[ModelEvent]) -> None:
        """A part ends."""
        if not self.ended:
            self._close_part(self._part(kind, event.part, out), event.body, out)

    def done(self, given: Json, out: list[ModelEvent]) -> None:
        """The item ends; `given` is the server's final form of it."""
        if self.ended:
            return
        if self._call_text is not None:
            self._announce(given.get("name"), out)
            text = items.as_text(given.get(self._call_text))
            self._settle(self._item.said, text, None, self._call_text, out)
        elif self.type in items.TEXT_ITEMS:
            for name in items.FAMILIES:
                said = self._item.parts[name]
                waiting = {kind: iter([part for part in said if part.kind == kind]) for kind in items.DELTA_OF_PART}
                for kind, body in self._known_parts(name, given):
                    part = next(waiting[kind], None) or self._open_part(kind, None, out)
                    self._close_part(part, body, out)
        self._end(items.final_status(given), out, given)

    def end(self, status: str, out: list[ModelEvent]) -> None:
        """The item ends without the server saying so."""
        if not self.ended:
            self._end(status, out, None)

    def _end(self, status: str, out: list[ModelEvent], given: Json | None) -> None:
        self.ended = True
        if not self._announced:
            if status == "completed":
                raise UpstreamError("The inference server called a tool without naming it.", code=BAD_ANSWER)
            return
        for part in list(self._item.open_parts()):
            self._close_part(part, None, out)
        shape = self._item.shape(status, given)
        self._spend(max(0, len(json_codec.encode(shape)) - self._size))
        self._item.said.replace("")
        out.append(ItemDone(self.key, shape))

    def _announce(self, name: object, out: list[ModelEvent]) -> None:
        """A call that was waiting for its name has it: announce it, with what was said of it so far."""
        if self._announced or not isinstance(name, str) or not name or self._call_text is None:
            return
        self._announced = True
        self._item.start = {**self._item.start, "name": name}
        out.append(ItemAdded(self.key, self._item.start))
        if self._item.said:
            out.append(Delta(self.key, None, self._call_text, self._item.said.value))

    def _part(self, kind: PartKind, said: int, out: list[ModelEvent]) -> PartialPart:
        """The part that the server means, opened now unless it is known."""
        part = self._said.get(("summary" if kind == "summary_text" else "content", said))
        return part if part is not None and part.kind == kind else self._open_part(kind, said, out)

    def _open_part(self, kind: PartKind, said: int | None, out: list[ModelEvent]) -> PartialPart:
        if self._part_begun is not None:
            self._close_part(self._part_begun, None, out)
        part = self._part_begun = self._item.add_part(kind)
        if said is not None:
            self._said[items.family(kind), said] = part
        self._spend(EMPTY_BYTES)
        out.append(PartAdded(self.key, part.index, kind))
        return part

    def _close_part(self, part: PartialPart, body: Json | None, out: list[ModelEvent]) -> None:
        if part.body is not None:
            return
        if body is not None:
            text = items.as_text(body.get(items.text_field(part.kind)))
            self._settle(part.said, text, part.index, items.DELTA_OF_PART[part.kind], out)
            part.annotations = _objects(body.get("annotations")) or part.annotations
            part.logprobs = _objects(body.get("logprobs")) or part.logprobs
        shape = part.shape()
        part.close(shape)
        out.append(PartDone(self.key, part.index, shape))

    def _known_parts(self, name: Family, given: Json) -> list[tuple[PartKind, Json]]:
        """The parts of the item's final form, but for those that the API has not in such an item: no event could open
        them, and no client could send them back."""
        bodies = _objects(given.get(name))
        known = [(kind, body) for body in bodies if (kind := items.part_kind(self.type, name, body)) is not None]
        if len(known) < len(bodies):
            _log.warning("unknown parts of an item left out", item_type=self.type, parts=len(bodies) - len(known))
        return known

    def _settle(self, said: GrowingText, text: str, index: int | None, kind: DeltaKind, out: list[ModelEvent]) -> None:
        """Make `said` the final `text`, and say the rest of it where it goes on from what was said.

        Arguments that say the same in other characters stay as they were streamed.
        """
        if not text:
            return
        before = said.value
        if text == before or (kind == "arguments" and before and same_json(before, text)):
            return
        said.replace(text)
        rest = text.removeprefix(before)
        self._spend(_size(rest))
        if self._announced and text.startswith(before):
            out.append(Delta(self.key, index, kind, rest))

    def _refuse_more(self) -> None:
        """After its own end, more text is a repetition; after the next item began, it would be lost."""
        if self.left:
            raise UpstreamError("The inference server went back to an item that it had left.", code=BAD_ANSWER)

    def _spend(self, size: int) -> None:
        self._size += size
        self._budget.spend(size)


def _objects(value: object) -> list[Json]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _is_json(text: str) -> bool:
    try:
        json_codec.decode(text)
    except ValueError:
        return False
    return True


def _size(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))
