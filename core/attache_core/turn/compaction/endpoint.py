"""`POST /v1/responses/compact`: a whole window in, a shorter one out, and nothing stored.

The output is what the client sends as `input` from then on: all messages of the user's, what orchestration needs to
know of the past (lists of MCP tools, tools that were found), the checkpoint, and what waits for an answer of the
client's. Source: API reference, "Compact a response"; what is kept beside messages and checkpoint is this project's.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING

from attache_core.events.event import Event
from attache_core.json_codec import Json
from attache_core.storage.store import Store
from attache_core.turn.below import Below
from attache_core.turn.compaction.checkpoint import Checkpoint, compaction_item, without_type
from attache_core.turn.compaction.summary import summarise
from attache_core.turn.compaction.terms import CompactionTerms
from attache_core.turn.compaction.window import everything, open_window
from attache_core.turn.pending_calls import check_calls
from attache_core.turn.persist import identified
from attache_core.turn.rehydrate import with_history
from attache_core.types.compaction import TRIGGER
from attache_core.types.ids import item_id, new_id
from attache_core.types.item_resource import item_resource
from attache_core.types.turn import TurnRequest, input_items
from attache_core.types.usage import full_usage

if TYPE_CHECKING:
    # Its cryptography is loaded only where there are keys.
    from attache_core.turn.compaction.seal import Seal

_ORCHESTRATION = frozenset({"mcp_list_tools", "additional_tools", "tool_search_call", "tool_search_output"})


async def answer_compact(
    turn: TurnRequest, below: Below, store: Store, seal: Seal, terms: CompactionTerms
) -> AsyncGenerator[Event, None]:
    """Answer a valid request for compaction: one terminal event, whose `response` is a `response.compaction` object.

    Raises:
        ClientError: the history is unknown, an output answers no call, or a checkpoint is not one of this deployment's.
        UpstreamError: the model wrote no summary.
        AttacheError: what `below` raises.
    """
    items = without_type(input_items((await with_history(turn, store)).body), TRIGGER)
    division = everything(open_window(items, seal, turn.facts.tenant).items, terms)
    check_calls(division.old)
    summary = await summarise(turn, division.old, below, terms.max_summary_tokens)
    checkpoint = seal.close(turn.facts.tenant, Checkpoint(division.before, summary.text))
    waiting = [_shown(item) for item in division.after]
    earlier = _kept(items[: len(items) - len(waiting)])
    output = [*earlier, compaction_item(item_id("compaction"), checkpoint), *waiting]
    yield Event("response.completed", {"type": "response.completed", "response": _object(output, summary.usage)})


def _object(output: Sequence[Json], usage: Json | None) -> Json:
    return {
        "id": new_id("resp"),
        "object": "response.compaction",
        "created_at": int(time.time()),
        "output": output,
        "usage": full_usage(usage or {}),
        "image": None,
    }


def _kept(items: Sequence[Json]) -> list[Json]:
    """What of the items is output as it came."""
    return [_shown(item) for item in items if item.get("role") == "user" or item.get("type") in _ORCHESTRATION]


def _shown(item: Json) -> Json:
    return item_resource(identified(item))
