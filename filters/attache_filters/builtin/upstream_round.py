"""`upstream_round`: one inference round. Nothing above it knows which inference server answered."""

from __future__ import annotations

from collections.abc import AsyncIterator

from pydantic import Field

from attache_core import json_codec
from attache_core.events.dialects import DialectName, dialect_for
from attache_core.events.event import Event
from attache_core.turn.round import RoundLimits, run_round
from attache_core.types.turn import TurnRequest
from attache_filters.sdk.filter import FilterConfig, InferenceFilter
from attache_filters.sdk.http import HttpBelow, HttpRequest, HttpResponse

MIB = 1024 * 1024


class UpstreamRoundConfig(FilterConfig):
    dialect: DialectName = "auto"
    """What the inference server speaks; `auto` recognises it from what it says."""

    max_event_bytes: int = Field(default=16 * MIB, ge=1024)
    """Bytes of one server-sent event of the inference server; a larger one fails the round."""

    max_response_bytes: int = Field(default=16 * MIB, ge=1024)
    """Bytes that are kept of one round's answer; a larger one fails the round."""

    error_body_timeout_s: float = Field(default=5.0, gt=0, le=60)
    """Seconds that the body of an error may take; what came by then is what counts."""

    headers_timeout_s: float = Field(default=600.0, gt=0, le=86_400)
    """Seconds until the answer begins: with one that is not streamed, as long as the model takes to make it."""


class UpstreamRound(InferenceFilter[UpstreamRoundConfig]):
    """Asks the inference server for one round and turns its dialect, and its failures, into the API's own."""

    config_type = UpstreamRoundConfig

    def __call__(self, turn: TurnRequest, below: HttpBelow) -> AsyncIterator[Event]:
        async def send(turn: TurnRequest) -> HttpResponse:
            headers = {**turn.headers, "content-type": "application/json"}
            return await below(HttpRequest("POST", "/v1/responses", headers, json_codec.encode(turn.body)))

        config = self.config
        limits = RoundLimits(
            max_event_bytes=config.max_event_bytes,
            max_response_bytes=config.max_response_bytes,
            error_body_timeout_s=config.error_body_timeout_s,
            headers_timeout_s=config.headers_timeout_s,
        )
        return run_round(turn, send, dialect=dialect_for(config.dialect), limits=limits)
