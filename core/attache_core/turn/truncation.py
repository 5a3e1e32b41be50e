"""`truncation: auto`: what does not fit into the model's context loses its oldest items, and is asked again.

Only an inference server knows how large its context is, so it is asked first; each time that it says the input is too
long, about a quarter of what is left goes. Invariants: no call is parted from its output, and what a model said at once
stays together; messages of the roles system and developer, the latest checkpoint and the user's newest message stay.
Source: API reference, "truncation".
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import structlog

from attache_core.errors import ClientError
from attache_core.events.dialects.context_length import CONTEXT_LENGTH_EXCEEDED, CONTEXT_PARAM
from attache_core.events.event import Event
from attache_core.events.event_stream import Batch, batched, batches
from attache_core.json_codec import Json, encode
from attache_core.turn.below import Below
from attache_core.turn.cuts import newest_of_user, turn_cuts
from attache_core.types.compaction import COMPACTION
from attache_core.types.turn import TurnRequest

MAX_TRUNCATIONS = 8
"""How often in one round: by then a tenth of the input is left."""

_LEFT = 0.75
_SAYS_NOTHING = frozenset({"response.created", "response.in_progress"})

_log = structlog.get_logger(__name__)


def truncating(below: Below) -> Below:
    """The same, for turns that ask for truncation; for one turn, whose later rounds begin where the last one ended."""
    return _Truncation(below).ask


class _Truncation:
    def __init__(self, below: Below) -> None:
        self._below = below
        self._begins = 0
        """The items before this one did not fit in an earlier round."""

    def ask(self, turn: TurnRequest) -> AsyncGenerator[Event, None]:
        """What is below; where the turn asks for it, asked with as much of the input as the model takes."""
        auto = turn.body.get("truncation") == "auto"
        return self._ask(turn.without("truncation")) if auto else self._below(turn)

    @batched
    async def _ask(self, turn: TurnRequest) -> AsyncGenerator[Batch, None]:
        items = turn.body.get("input")
        given: list[Json] = items if isinstance(items, list) else []
        self._begins = max(self._begins, _latest_checkpoint(given))
        for attempt in range(MAX_TRUNCATIONS + 1):
            cut = _next_cut(given, self._begins) if attempt < MAX_TRUNCATIONS else None
            events = self._below(turn.with_body(input=_from(given, self._begins)) if given else turn)
            async with aclosing(events):
                try:
                    begun = [] if cut is None else await _beginning(events)
                except ClientError as error:
                    if error.code != CONTEXT_LENGTH_EXCEEDED or cut is None:
                        raise
                    _log.info("input truncated", begins=cut, items=len(given))
                    self._begins = cut
                    continue
                if begun:
                    yield begun
                async for batch in batches(events):
                    yield batch
                return


async def _beginning(events: AsyncGenerator[Event, None]) -> list[Event]:
    """The events up to the first that says something.

    Raises:
        ClientError: `context_length_exceeded`, also where the server says that in its stream.
    """
    begun: list[Event] = []
    async for event in events:
        begun.append(event)
        if event.type in _SAYS_NOTHING:
            continue
        error = (event.data["response"].get("error") or {}) if event.type == "response.failed" else {}
        if error.get("code") == CONTEXT_LENGTH_EXCEEDED:
            raise ClientError(error.get("message") or "", code=CONTEXT_LENGTH_EXCEEDED, param=CONTEXT_PARAM)
        break
    return begun


def _next_cut(items: Sequence[Json], begins: int) -> int | None:
    """Where the input is to begin so that about a quarter of what may go is gone; None where nothing may."""
    stays = _stays(items)
    sizes = [0 if place in stays else len(encode(item)) for place, item in enumerate(items)]
    lighter = [place for place in turn_cuts(items) if place > begins and any(sizes[begins:place])]
    left = sum(sizes[begins:]) * _LEFT
    return next((place for place in lighter if sum(sizes[place:]) <= left), lighter[-1] if lighter else None)


def _from(items: Sequence[Json], cut: int) -> list[Json]:
    stays = _stays(items)
    return [item for place, item in enumerate(items) if place >= cut or place in stays]


def _stays(items: Sequence[Json]) -> set[int]:
    """The places of what is never dropped."""
    orders = [place for place, item in enumerate(items) if item.get("role") in ("system", "developer")]
    return {newest_of_user(items), _latest_checkpoint(items), *orders}


def _latest_checkpoint(items: Sequence[Json]) -> int:
    """Its place, before which nothing is told; -1 where there is none."""
    return max((place for place, item in enumerate(items) if item.get("type") == COMPACTION), default=-1)
