"""`upstream_round`: one inference round. Nothing above it knows which inference server answered."""

from __future__ import annotations

from collections.abc import AsyncIterator

from attache_core import json_codec
from attache_core.events.dialects import DialectName, dialect_for
from attache_core.events.event import Event
from attache_core.turn.round import run_round
from attache_core.types.turn import TurnRequest
from attache_filters.builtin.round_settings import RoundSettings
from attache_filters.sdk.filter import InferenceFilter
from attache_filters.sdk.http import HttpBelow, HttpRequest, HttpResponse


class UpstreamRoundConfig(RoundSettings):
    dialect: DialectName = "auto"
    """What the inference server speaks; `auto` recognises it from what it says. The upstream's setting of that name,
    unless it is given here."""


class UpstreamRound(InferenceFilter[UpstreamRoundConfig]):
    """Asks the inference server for one round and turns its dialect, and its failures, into the API's own."""

    config_type = UpstreamRoundConfig

    @classmethod
    def may_be_bypassed(cls, config: UpstreamRoundConfig) -> bool:
        """See `Filter.may_be_bypassed`."""
        return config.dialect in ("auto", "openai")

    def __call__(self, turn: TurnRequest, below: HttpBelow) -> AsyncIterator[Event]:
        async def send(turn: TurnRequest) -> HttpResponse:
            headers = {**turn.headers, "content-type": "application/json"}
            return await below(HttpRequest("POST", "/v1/responses", headers, json_codec.encode(turn.body)))

        return run_round(turn, send, dialect=dialect_for(self.config.dialect), limits=self.config.limits)
