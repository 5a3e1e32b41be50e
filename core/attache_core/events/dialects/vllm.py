"""vLLM's Python server, and the other front ends of vLLM.

Their ids, nulls, `content_index` and `reasoning_part.*` need no rule of their own: ids are never trusted, nulls say
nothing, part numbers only tell parts apart. What does is here: stray fields of items, and a first argument delta `{}`
that is not part of the arguments. Source: recordings.
"""

from __future__ import annotations

from collections.abc import Iterable

from attache_core.events.delta_run import DeltaRun
from attache_core.events.dialects.base import Dialect
from attache_core.events.dialects.event_types import DELTAS
from attache_core.events.model_events import Delta, DeltaKind, Finished
from attache_core.events.text_done import SaidEvent, TextDone
from attache_core.json_codec import Json


class VllmDialect(Dialect):
    """Holds back a first argument delta `{}`: if more follows, it cannot have belonged to the same JSON."""

    def __init__(self) -> None:
        super().__init__()
        self._first: dict[str, SaidEvent | None] = {}
        """The first argument delta of each call while it is held back; None once there was another."""

    def _delta(self, key: str, kind: DeltaKind, part: int | None, payload: Json) -> Iterable[SaidEvent]:
        said = super()._delta(key, kind, part, payload)
        if kind != "arguments":
            return said
        # A delta without a number is llama.cpp's, and what it says is so.
        if key not in self._first and payload["delta"] == "{}" and "output_index" in payload:
            self._first[key] = Delta(key, part, kind, "{}")
            return ()
        self._first[key] = None
        return said

    def read_run(self, run: DeltaRun) -> Iterable[SaidEvent]:
        """See `Dialect.read_run`. The first argument delta of a call is looked at alone."""
        if DELTAS[run.type][0] != "arguments":
            return super().read_run(run)
        return [said for event in run.events() for said in self.read(event.data)]

    def _text_done(self, payload: Json, kind: DeltaKind, index: str | None, name: str) -> Iterable[SaidEvent]:
        said = super()._text_done(payload, kind, index, name)
        self._first.update((event.key, None) for event in said if isinstance(event, TextDone))
        return said

    def _clean(self, item: Json) -> Json:
        cleaned = super()._clean(item)
        if item["type"] != "reasoning":
            cleaned.pop("summary", None)
        return cleaned

    def _end(self, finished: Finished) -> Iterable[SaidEvent]:
        held = [delta for delta in self._first.values() if delta is not None]
        # A call whose arguments were said does not heed this; of one that was left open, `{}` is all there is.
        return [*held, *super()._end(finished)]
