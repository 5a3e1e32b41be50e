"""Writing a turn: once, whole, and before anybody is told that it is complete."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import structlog

from attache_core.errors import AttacheError, StoreError, UpstreamError
from attache_core.events.error_codes import BAD_ANSWER
from attache_core.events.event_stream import Batch, batched, batches
from attache_core.json_codec import Json
from attache_core.storage.row import turn_items
from attache_core.storage.store import Store, StoredTurn
from attache_core.turn.below import Below
from attache_core.turn.conversation_hold import ConversationHold, HoldTerms, hold_conversation
from attache_core.turn.departure import Departure, SaidSoFar
from attache_core.turn.once import forbid_retry
from attache_core.turn.references import resolve_references
from attache_core.types.compaction import TRIGGER
from attache_core.types.ids import item_id, new_id
from attache_core.types.turn import TurnRequest, input_items

DEFAULT_TERMS = HoldTerms()
DEFAULT_DEPARTURE = Departure()

_log = structlog.get_logger(__name__)


@batched
async def persist(
    turn: TurnRequest,
    below: Below,
    store: Store,
    terms: HoldTerms = DEFAULT_TERMS,
    departure: Departure = DEFAULT_DEPARTURE,
) -> AsyncGenerator[Batch, None]:
    """Run the turn below under an id of ours and write it in one transaction before its terminal event is released.

    What is stored are the items that the input refers to, never the references. A turn that names a conversation holds
    it from before it is read, and its items are added to it in the same transaction, also with `store: false`.

    Nothing is written when the turn is refused or fails before its first event, or, save for the items of a
    conversation, with `store: false`. A turn that fails after that is written as failed, so that nothing continues from
    it, and adds nothing to its conversation. Neither does one that is written as cancelled, because its client went
    away: `departure` says whether it is.

    Raises:
        ClientError: 404, the input refers to an item that is not stored, or the conversation is unknown; 400, another
            turn holds it; 409, it changed under the turn, which was not written.
        StoreError: the turn could not be written, and the client must not believe that it was.
    """
    turn = turn.with_facts(response_id=turn.facts.response_id or new_id("resp"), stored=turn.store)
    async with hold_conversation(turn, store, terms) as hold:
        leaves_something = turn.store or hold.lease is not None
        if hold.lease is not None:
            turn = turn.with_facts(conversation_revision=hold.lease.revision)
        if leaves_something:
            turn = await resolve_references(turn, store)
        writer = _Writer(turn, store, hold)
        said = SaidSoFar(turn, departure) if leaves_something and departure.on_disconnect != "cancel" else None
        try:
            async with aclosing(below(turn if said is None else said.asked)) as events:
                async for batch in batches(events):
                    for part in _parted(batch):
                        if said is not None:
                            said.observe(part)
                        if part[-1].is_terminal:
                            await writer.write(part[-1].data["response"])
                        if said is None or said.is_for_client(part[-1]):
                            yield part
        except (asyncio.CancelledError, GeneratorExit):
            if said is not None:
                await writer.write_last(said.response())
            raise


def _parted(batch: Batch) -> Sequence[Batch]:
    """The batch, with its terminal event alone: what comes before it need not wait until the turn is written."""
    return (batch[:-1], batch[-1:]) if len(batch) > 1 and batch[-1].is_terminal else (batch,)


class _Writer:
    """Writes one turn, once."""

    def __init__(self, turn: TurnRequest, store: Store, hold: ConversationHold) -> None:
        self._turn = turn
        self._store = store
        self._hold = hold
        self._written = False

    async def write(self, response: Json) -> None:
        """Write what there is to write of a turn that ended with this response."""
        turn, unfinished = self._turn, response.get("status") in ("failed", "cancelled")
        if response.get("id") != turn.facts.response_id:
            if not unfinished:
                raise UpstreamError("What is below answered with another response.", code=BAD_ANSWER)
            return
        if not turn.store and self._hold.lease is None:
            return
        stored = StoredTurn(response, stored_input(turn.body))
        if unfinished:
            await self._write_unfinished(stored)
        else:
            await self._write_finished(stored)
        self._written = True

    async def write_last(self, response: Json) -> None:
        """The same for a turn whose client has gone, unless it is written: nobody can be told that it failed."""
        if self._written:
            return
        try:
            await self.write(response)
        except AttacheError as error:
            _log.warning("turn not stored", response_id=response["id"], reason=error.message)

    async def _write_finished(self, turn: StoredTurn) -> None:
        try:
            await (self._hold.save(turn) if self._turn.store else self._hold.append(turn_items(turn)))
        except AttacheError as error:
            forbid_retry(error, turn.response["output"])
            raise

    async def _write_unfinished(self, turn: StoredTurn) -> None:
        if not self._turn.store:
            return
        try:
            await self._store.save_turn(self._turn.facts.tenant, turn)
        except StoreError as error:
            _log.warning("turn not stored", response_id=turn.response["id"], reason=error.message)


def stored_input(body: Json) -> list[Json]:
    """The items that the client sent in this turn, each with an id; ids that the client gave are kept.

    What asks for a checkpoint is no part of a conversation.
    """
    return [identified(item) for item in input_items(body) if item.get("type") != TRIGGER]


def identified(item: Json) -> Json:
    """An item as it is stored: with its type, which comes first, and an id."""
    if item.get("id") and item.get("type") and next(iter(item)) == "type":
        return item
    kind = item.get("type") or "message"
    return {"type": kind, **item} | {"type": kind, "id": item.get("id") or item_id(kind)}
