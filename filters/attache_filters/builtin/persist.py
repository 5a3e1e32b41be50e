"""`persist`: a turn is in the store before its client is told that it is complete."""

from __future__ import annotations

from collections.abc import AsyncIterator

from attache_core.events.event import Event
from attache_core.turn.below import Below
from attache_core.turn.persist import persist
from attache_core.types.turn import TurnRequest
from attache_filters.sdk.filter import FilterConfig, TurnFilter


class Persist(TurnFilter[FilterConfig]):
    """Gives the response its id and writes the turn in one transaction before the terminal event is released."""

    def __call__(self, turn: TurnRequest, below: Below) -> AsyncIterator[Event]:
        return persist(turn, below, self.services.store)
