"""Deltas of one text that follow each other, as one event that knows how it was cut.

Most of a stream is such a run, and what its events share (the item, the part, what kind of text it is) is looked at
once for all of them. Knows canonical events; is unaware of who made them and of what they mean. Invariant: a run is
worth the same as `events`, in their order; nothing but `delta`, `sequence_number` and `obfuscation` differs in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from attache_core import json_codec
from attache_core.events.event import Event
from attache_core.json_codec import Json

_VARYING = re.compile(rb'"\\u0000(delta|sequence_number|obfuscation)"')
_FEW = 3
"""Runs so short are encoded event by event: that is cheaper than making a form for them."""


@dataclass(frozen=True, slots=True)
class DeltaRun(Event):
    """At least one delta.

    Attributes:
        data: the payload of one event that says all of it: `delta` is the whole text, the number is the last one.
        texts: what each of them says.
        numbers: their sequence numbers; None for a stream without.
        paddings: their `obfuscation`; None for a stream without.
    """

    texts: Sequence[str]
    numbers: Sequence[int] | None = None
    paddings: Sequence[str] | None = None

    def events(self) -> Iterator[Event]:
        """The events one by one."""
        columns = self._columns
        for values in zip(*columns.values(), strict=True):
            yield Event(self.type, {**self.data, **dict(zip(columns, values, strict=True))})

    def payloads(self) -> Iterable[bytes]:
        """The payload of each, as JSON."""
        form = self._form() if len(self.texts) > _FEW else None
        if form is None:
            return (json_codec.encode(event.data) for event in self.events())
        line, names = form
        columns = self._columns
        encoded = [json_codec.encode_each(columns[name]) for name in names]
        return [line % values for values in zip(*encoded, strict=True)]

    @property
    def _columns(self) -> dict[str, Sequence[str] | Sequence[int]]:
        """The values of the fields that differ."""
        columns = {"delta": self.texts, "sequence_number": self.numbers, "obfuscation": self.paddings}
        return {name: values for name, values in columns.items() if values is not None}

    def _form(self) -> tuple[bytes, list[str]] | None:
        """The payload as a format, and the fields that go into it in order; None where a text looks like a field."""
        marked = json_codec.encode({**self.data, **{name: f"\0{name}" for name in self._columns}})
        names = [name.decode() for name in _VARYING.findall(marked)]
        if sorted(names) != sorted(self._columns):
            return None
        return _VARYING.sub(b"%b", marked.replace(b"%", b"%%")), names


def one_by_one(events: Iterable[Event]) -> Iterator[Event]:
    """The same events without runs."""
    for event in events:
        if isinstance(event, DeltaRun):
            yield from event.events()
        else:
            yield event


def delta_run(
    data: Json, texts: Sequence[str], numbers: Sequence[int] | None, paddings: Sequence[str] | None
) -> DeltaRun:
    """A run; `data` is the payload of any of its events."""
    whole: Json = {**data, "delta": "".join(texts)}
    if numbers is not None:
        whole["sequence_number"] = numbers[-1]
    return DeltaRun(whole["type"], whole, texts, numbers, paddings)
