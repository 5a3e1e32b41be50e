"""`rehydrate`: the conversation that `previous_response_id` stands for, in front of the new input."""

from __future__ import annotations

from attache_core.turn.rehydrate import rehydrate
from attache_core.types.turn import TurnRequest
from attache_filters.sdk.filter import FilterConfig, RequestFilter


class Rehydrate(RequestFilter[FilterConfig]):
    """Loads the history of the conversation, checks that calls and outputs belong together, and sends both below."""

    @classmethod
    def may_be_bypassed(cls, config: FilterConfig) -> bool:
        """See `Filter.may_be_bypassed`."""
        return True

    async def request(self, turn: TurnRequest) -> TurnRequest:
        """See `RequestFilter.request`."""
        return await rehydrate(turn, self.services.store)
