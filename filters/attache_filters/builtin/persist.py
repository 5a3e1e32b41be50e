"""`persist`: a turn is in the store before its client is told that it is complete."""

from __future__ import annotations

from collections.abc import AsyncIterator

from pydantic import Field

from attache_core.events.event import Event
from attache_core.turn.below import Below
from attache_core.turn.conversation_hold import DEFAULT_LEASE_S, DEFAULT_WAIT_S, HoldTerms
from attache_core.turn.persist import persist
from attache_core.types.turn import TurnRequest
from attache_filters.sdk.filter import FilterConfig, TurnFilter


class PersistConfig(FilterConfig):
    conversation_wait_s: float = Field(default=DEFAULT_WAIT_S, ge=0, le=600)
    """Seconds that a turn waits for another one on the same conversation; past it, or with 0 at once, it is answered
    400 `conversation_locked`."""

    conversation_lease_s: float = Field(default=DEFAULT_LEASE_S, ge=1, le=600)
    """Seconds after which the conversation of a worker that died is free again. A worker that lives renews its hold
    three times as often."""


class Persist(TurnFilter[PersistConfig]):
    """Gives the response its id and writes the turn in one transaction before the terminal event is released."""

    config_type = PersistConfig

    def __call__(self, turn: TurnRequest, below: Below) -> AsyncIterator[Event]:
        terms = HoldTerms(self.config.conversation_wait_s, self.config.conversation_lease_s)
        return persist(turn, below, self.services.store, terms)
