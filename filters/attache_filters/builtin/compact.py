"""`compact`: the model is told the latest checkpoint of a conversation instead of what it stands for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

from pydantic import Field

from attache_core.events.event import Event
from attache_core.turn.below import Below
from attache_core.turn.compaction.compact import compact
from attache_core.types.compaction import MIN_THRESHOLD
from attache_core.types.turn import TurnRequest
from attache_filters.builtin.compaction_settings import CheckpointSettings, require_seal
from attache_filters.sdk.filter import Services, TurnFilter


class CompactConfig(CheckpointSettings):
    threshold_tokens: int | None = Field(default=None, ge=MIN_THRESHOLD)
    """Tokens, as estimated, of what the model is told in one round; past it, older items give way to a summary. The
    `context_management` of a request goes before it. Without it, only what a request asks for is done."""


class Compact(TurnFilter[CompactConfig]):
    """Puts a summary in the place of older items, where the conversation has outgrown its threshold or the client asks
    for it. Belongs into the loop, right above the filter that asks the inference server."""

    config_type = CompactConfig
    calls_below_again = True

    @classmethod
    def may_be_bypassed(cls, config: CompactConfig) -> bool:
        """See `Filter.may_be_bypassed`."""
        return config.threshold_tokens is None

    def __init__(self, config: CompactConfig, services: Services) -> None:
        super().__init__(config, services)
        self._seal = require_seal(services)
        self._terms = replace(config.terms, threshold_tokens=config.threshold_tokens)

    def __call__(self, turn: TurnRequest, below: Below) -> AsyncIterator[Event]:
        return compact(turn, below, self._seal, self._terms)
