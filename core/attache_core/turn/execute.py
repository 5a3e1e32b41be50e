"""The whole turn with plain control flow: what the filters do, composed without Envoy.

For tests, and for embedding: the same functions that the built-in filters call, in the same order.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from attache_core.events.dialects import DialectName, dialect_for
from attache_core.events.event import Event
from attache_core.events.event_stream import Batch, batched, batches
from attache_core.storage.store import Store
from attache_core.tools.tool_types import ToolTypes
from attache_core.turn.compaction.compact import compact
from attache_core.turn.compaction.terms import CompactionTerms
from attache_core.turn.loop import LoopLimits, run_tool_loop
from attache_core.turn.persist import persist
from attache_core.turn.rehydrate import rehydrate
from attache_core.turn.round import RoundLimits, Send, run_round
from attache_core.types.request import validate_create
from attache_core.types.turn import TurnRequest

if TYPE_CHECKING:
    # Its cryptography is loaded only where there are keys.
    from attache_core.turn.compaction.seal import Seal


@dataclass(frozen=True, slots=True)
class Engine:
    """What a turn needs of the world."""

    store: Store
    tools: ToolTypes
    send: Send
    dialect: DialectName = "auto"
    seal: Seal | None = None
    compaction: CompactionTerms = field(default_factory=CompactionTerms)
    loop: LoopLimits = field(default_factory=LoopLimits)
    round: RoundLimits = field(default_factory=RoundLimits)


async def execute(turn: TurnRequest, engine: Engine) -> AsyncGenerator[Event, None]:
    """Answer one turn: canonical events, the last of which is terminal.

    Raises:
        AttacheError: before the first event.
    """

    def inference(turn: TurnRequest) -> AsyncGenerator[Event, None]:
        return run_round(turn, engine.send, dialect=dialect_for(engine.dialect), limits=engine.round)

    def window(turn: TurnRequest) -> AsyncGenerator[Event, None]:
        return inference(turn) if engine.seal is None else compact(turn, inference, engine.seal, engine.compaction)

    @batched
    async def conversation(turn: TurnRequest) -> AsyncGenerator[Batch, None]:
        whole = await rehydrate(turn, engine.store)
        looped = run_tool_loop(whole, window, engine.tools, engine.loop, engine.store.approvals)
        async with aclosing(looped) as events:
            async for batch in batches(events):
                yield batch

    validate_create(turn.body, compacts=engine.seal is not None, extensions=engine.tools.extensions)
    async with aclosing(persist(turn, conversation, engine.store)) as events:
        async for event in events:
            yield event
