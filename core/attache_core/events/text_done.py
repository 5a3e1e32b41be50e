"""The end of a text as servers announce it, before the end of its part or item.

Only dialects make it and only the accumulator reads it, so it is no part of the strict vocabulary: in there, a text is
complete with its `PartDone` or `ItemDone`.
"""

from __future__ import annotations

from dataclasses import dataclass

from attache_core.events.model_events import DeltaKind, ModelEvent


@dataclass(frozen=True, slots=True)
class TextDone:
    """All of a part's text, of a call's arguments or of its input. `part` is None for the last two."""

    key: str
    part: int | None
    kind: DeltaKind
    text: str
    name: str | None = None
    """The function's name, which some servers repeat here."""


SaidEvent = ModelEvent | TextDone
"""What a dialect says, tolerantly."""
