"""`persist`: a turn is in the store before its client is told that it is complete."""

from __future__ import annotations

from collections.abc import AsyncIterator

from pydantic import Field

from attache_core.events.event import Event
from attache_core.turn.below import Below
from attache_core.turn.conversation_hold import DEFAULT_LEASE_S, DEFAULT_WAIT_S, HoldTerms
from attache_core.turn.departure import (
    DEFAULT_FINISH_TIMEOUT_S,
    DEFAULT_MAX_UNATTENDED,
    Departure,
    OnDisconnect,
)
from attache_core.turn.persist import persist
from attache_core.types.turn import TurnRequest
from attache_filters.sdk.filter import FilterConfig, Services, TurnFilter


class PersistConfig(FilterConfig):
    conversation_wait_s: float = Field(default=DEFAULT_WAIT_S, ge=0, le=600)
    """Seconds that a turn waits for another one on the same conversation; past it, or with 0 at once, it is answered
    400 `conversation_locked`."""

    conversation_lease_s: float = Field(default=DEFAULT_LEASE_S, ge=1, le=600)
    """Seconds after which the conversation of a worker that died is free again. A worker that lives renews its hold
    three times as often."""

    on_disconnect: OnDisconnect = "cancel"
    """What becomes of a turn whose client goes away. `cancel`: it ends, with all that runs for it, and nothing of it is
    stored. `store_cancelled`: it ends likewise, and is stored with the status `cancelled` and what was said so far.
    `finish`: it goes on to its end and is stored. With the latter two, inference servers are asked to stream, also
    where the client does not: only of a stream is it known how far it had come."""

    finish_timeout_s: float = Field(default=DEFAULT_FINISH_TIMEOUT_S, gt=0, le=86_400)
    """Seconds that a turn goes on without its client under `on_disconnect: finish`; past them it is cancelled, and
    stored as `cancelled`."""

    max_unattended_turns: int = Field(default=DEFAULT_MAX_UNATTENDED, ge=1, le=100_000)
    """Turns without their clients that go on at the same time in one worker process; a further one is cancelled, and
    stored as `cancelled`."""


class Persist(TurnFilter[PersistConfig]):
    """Gives the response its id and writes the turn in one transaction before the terminal event is released."""

    config_type = PersistConfig

    def __init__(self, config: PersistConfig, services: Services) -> None:
        super().__init__(config, services)
        self._terms = HoldTerms(config.conversation_wait_s, config.conversation_lease_s)
        self._departure = Departure(config.on_disconnect, config.finish_timeout_s, config.max_unattended_turns)

    @classmethod
    def outlives_client(cls, config: PersistConfig) -> bool:
        """See `Filter.outlives_client`."""
        return config.on_disconnect == "finish"

    @classmethod
    def may_be_bypassed(cls, config: PersistConfig) -> bool:
        """See `Filter.may_be_bypassed`."""
        return True

    def __call__(self, turn: TurnRequest, below: Below) -> AsyncIterator[Event]:
        return persist(turn, below, self.services.store, self._terms, self._departure)
