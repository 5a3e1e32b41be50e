"""`compact_endpoint`: answers `POST /v1/responses/compact`."""

from __future__ import annotations

from collections.abc import AsyncIterator

from attache_core.events.event import Event
from attache_core.turn.below import Below
from attache_core.turn.compaction.endpoint import answer_compact
from attache_core.types.compact_request import validate_compact
from attache_core.types.turn import TurnRequest
from attache_filters.builtin.compaction_settings import CheckpointSettings, require_seal
from attache_filters.sdk.filter import Services, TurnFilter


class CompactEndpoint(TurnFilter[CheckpointSettings]):
    """Has the inference server below sum up a conversation, and answers with what the client sends from then on in its
    place. Nothing is stored."""

    config_type = CheckpointSettings
    calls_below_again = True

    def __init__(self, config: CheckpointSettings, services: Services) -> None:
        super().__init__(config, services)
        self._seal = require_seal(services)
        self._extensions = services.extensions

    def __call__(self, turn: TurnRequest, below: Below) -> AsyncIterator[Event]:
        validate_compact(turn.body, self._extensions)
        return answer_compact(turn, below, self.services.store, self._seal, self.config.terms)
