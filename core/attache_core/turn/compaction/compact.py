"""Compaction on the way to the model: the latest checkpoint is opened, and a new one is made where it is time.

One call is one round. The checkpoint that it makes is the first item of the round's answer, so that it stands before
what the model says next, for the client, in the store, and for the next round.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING

import structlog

from attache_core.errors import AttacheError, ClientError
from attache_core.events.accumulator import Accumulator
from attache_core.events.dialects import CanonicalReader
from attache_core.events.event import Event
from attache_core.events.event_stream import Batch, batched, batches, until_failure
from attache_core.events.model_events import Finished, ItemAdded, ItemDone, ModelEvent
from attache_core.turn.below import Below
from attache_core.turn.client_stream import ClientStream
from attache_core.turn.compaction.checkpoint import Checkpoint, compaction_item
from attache_core.turn.compaction.summary import Summary, summarise
from attache_core.turn.compaction.terms import CompactionTerms
from attache_core.turn.compaction.tokens import text_tokens
from attache_core.turn.compaction.window import Division, everything, open_window, outgrown
from attache_core.types.ids import item_id
from attache_core.types.tools import public_tools
from attache_core.types.turn import TurnRequest, input_items

if TYPE_CHECKING:
    # Its cryptography is loaded only where there are keys.
    from attache_core.turn.compaction.seal import Seal

_log = structlog.get_logger(__name__)


def compact(turn: TurnRequest, below: Below, seal: Seal, terms: CompactionTerms) -> AsyncGenerator[Event, None]:
    """Answer one round.

    Raises:
        ClientError: 400, a checkpoint is not one of this deployment's, or was altered; no threshold is known.
        AttacheError: what `below` raises; where the client asks for a checkpoint, also what kept the summary from
            being made. A summary that nobody asked for by name is done without: the window stays as it is.
    """
    threshold = _threshold(turn, terms)
    window = open_window(input_items(turn.body), seal, turn.facts.tenant)
    turn = turn.without("context_management")
    if window.triggered:
        return _checkpoint_alone(turn, everything(window.items, terms), below, seal, terms)
    division = None if threshold is None else outgrown(window, _beside(turn, terms), threshold, terms)
    if window.is_compacted:
        turn = turn.with_body(input=list(window.items))
    return below(turn) if division is None else _compacted(turn, division, below, seal, terms)


def _threshold(turn: TurnRequest, terms: CompactionTerms) -> int | None:
    asked = turn.body.get("context_management")
    if not asked:
        return terms.threshold_tokens
    given = [entry["compact_threshold"] for entry in asked if entry.get("compact_threshold") is not None]
    if not given and terms.threshold_tokens is None:
        param = "context_management[0].compact_threshold"
        message = f"Missing required parameter: '{param}'. This gateway has no threshold of its own."
        raise ClientError(message, code="missing_required_parameter", param=param)
    return min(given) if given else terms.threshold_tokens


def _beside(turn: TurnRequest, terms: CompactionTerms) -> int:
    told = (turn.body.get("instructions"), turn.body.get("tools"))
    return sum(text_tokens(value, terms.bytes_per_token) for value in told)


@batched
async def _checkpoint_alone(
    turn: TurnRequest, division: Division, below: Below, seal: Seal, terms: CompactionTerms
) -> AsyncGenerator[Batch, None]:
    """A round whose whole answer is a checkpoint."""
    summary = await summarise(turn, division.old, below, terms.max_summary_tokens)
    answer = _Answer(turn, division.checkpoint(summary.text), summary, seal)
    yield answer.alone()


@batched
async def _compacted(
    turn: TurnRequest, division: Division, below: Below, seal: Seal, terms: CompactionTerms
) -> AsyncGenerator[Batch, None]:
    """A round whose answer begins with a checkpoint, which the model is told already."""
    try:
        summary = await summarise(turn, division.old, below, terms.max_summary_tokens)
    except AttacheError as error:
        _log.warning("conversation not compacted", code=error.code, reason=error.message)
        async with aclosing(below(turn)) as events:
            async for batch in batches(events):
                yield batch
        return
    checkpoint = division.checkpoint(summary.text)
    answer = _Answer(turn, checkpoint, summary, seal)
    async with aclosing(below(turn.with_body(input=checkpoint.told))) as events:
        async for batch in batches(events):
            shown, failure = until_failure(shown for event in batch for shown in answer.feed(event))
            if shown:
                yield shown
            if failure is not None:
                raise failure
    if rest := answer.close():
        yield rest


class _Answer:
    """The round's response: the checkpoint, then what the model says; the usage is that of both calls."""

    def __init__(self, turn: TurnRequest, checkpoint: Checkpoint, summary: Summary, seal: Seal) -> None:
        self._client = ClientStream(turn, public_tools(turn.body.get("tools")))
        self._client.add_usage(summary.usage)
        self._client.owe(_item_events(seal.close(turn.facts.tenant, checkpoint)))
        self._reader = CanonicalReader()
        self._accumulator = Accumulator()

    def alone(self) -> list[Event]:
        """All of it, where the model is asked nothing more."""
        return [*self._client.start(), *self._client.finish(Finished("completed"))]

    def feed(self, event: Event) -> list[Event]:
        """What follows from an event of the model's round."""
        return self._show([one for said in self._reader.read(event.data) for one in self._accumulator.feed(said)])

    def close(self) -> list[Event]:
        """What is still owed where that round has ended."""
        shown = self._show(self._accumulator.close())
        finished = self._accumulator.finished
        assert finished is not None
        self._client.add_usage(finished.usage)
        return [*shown, *self._client.finish(finished)]

    def _show(self, said: list[ModelEvent]) -> list[Event]:
        return self._client.show(event for event in said if not isinstance(event, Finished))


def _item_events(encrypted_content: str) -> list[ModelEvent]:
    whole = compaction_item(item_id("compaction"), encrypted_content)
    key = whole["id"]
    return [ItemAdded(key, {**whole, "encrypted_content": ""}), ItemDone(key, whole)]
