"""`rehydrate`: the conversation that `previous_response_id` stands for, in front of the new input."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from attache_core.events.event_stream import Batch, batched, batches
from attache_core.turn.below import Below
from attache_core.turn.rehydrate import rehydrate
from attache_core.types.turn import TurnRequest
from attache_filters.sdk.filter import FilterConfig, TurnFilter


class Rehydrate(TurnFilter[FilterConfig]):
    """Loads the history of the conversation, checks that calls and outputs belong together, and sends both below."""

    @batched
    async def __call__(self, turn: TurnRequest, below: Below) -> AsyncGenerator[Batch, None]:
        async with aclosing(below(await rehydrate(turn, self.services.store))) as events:
            async for batch in batches(events):
                yield batch
