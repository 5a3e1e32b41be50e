"""`validate`: the request is what the Responses API defines, or is refused before anything happens."""

from __future__ import annotations

from collections.abc import AsyncIterator

from attache_core.events.event import Event
from attache_core.turn.below import Below
from attache_core.types.request import validate_create
from attache_core.types.turn import TurnRequest
from attache_filters.sdk.filter import FilterConfig, TurnFilter


class Validate(TurnFilter[FilterConfig]):
    """Checks the shape of a request and what its fields mean together; answers 400 with `param` and `code`."""

    def __call__(self, turn: TurnRequest, below: Below) -> AsyncIterator[Event]:
        validate_create(turn.body)
        return below(turn)
