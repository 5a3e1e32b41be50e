"""Writing a turn: once, whole, and before anybody is told that it is complete."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

import structlog

from attache_core.errors import StoreError, UpstreamError
from attache_core.events.error_codes import BAD_ANSWER
from attache_core.events.event import Event
from attache_core.json_codec import Json
from attache_core.storage.row import turn_items
from attache_core.storage.store import Store, StoredTurn
from attache_core.turn.below import Below
from attache_core.turn.conversation_hold import ConversationHold, HoldTerms, hold_conversation
from attache_core.turn.references import resolve_references
from attache_core.types.compaction import TRIGGER
from attache_core.types.ids import item_id, new_id
from attache_core.types.turn import TurnRequest, input_items

DEFAULT_TERMS = HoldTerms()

_log = structlog.get_logger(__name__)


async def persist(
    turn: TurnRequest, below: Below, store: Store, terms: HoldTerms = DEFAULT_TERMS
) -> AsyncGenerator[Event, None]:
    """Run the turn below under an id of ours and write it in one transaction before its terminal event is released.

    What is stored are the items that the input refers to, never the references. A turn that names a conversation holds
    it from before it is read, and its items are added to it in the same transaction, also with `store: false`.

    Nothing is written when the client goes away, when the turn is refused or fails before its first event, or, save
    for the items of a conversation, with `store: false`. A turn that fails after that is written as failed, so that
    nothing continues from it, and adds nothing to its conversation.

    Raises:
        ClientError: 404, the input refers to an item that is not stored, or the conversation is unknown; 400, another
            turn holds it; 409, it changed under the turn, which was not written.
        StoreError: the turn could not be written, and the client must not believe that it was.
    """
    turn = turn.with_facts(response_id=turn.facts.response_id or new_id("resp"), stored=turn.store)
    async with hold_conversation(turn, store, terms) as hold:
        if hold.lease is not None:
            turn = turn.with_facts(conversation_revision=hold.lease.revision)
        if turn.store or hold.lease is not None:
            turn = await resolve_references(turn, store)
        async with aclosing(below(turn)) as events:
            async for event in events:
                if event.is_terminal:
                    await _write(turn, event.data["response"], store, hold)
                yield event


async def _write(turn: TurnRequest, response: Json, store: Store, hold: ConversationHold) -> None:
    failed = response.get("status") == "failed"
    if not turn.store and (failed or hold.lease is None):
        return
    if response.get("id") != turn.facts.response_id:
        if not failed:
            raise UpstreamError("What is below answered with another response.", code=BAD_ANSWER)
        return
    stored = StoredTurn(response, stored_input(turn.body))
    if failed:
        await _write_failed(turn.facts.tenant, stored, store)
    elif turn.store:
        await hold.save(stored)
    else:
        await hold.append(turn_items(stored))


async def _write_failed(tenant: str, turn: StoredTurn, store: Store) -> None:
    try:
        await store.save_turn(tenant, turn)
    except StoreError as error:
        _log.warning("failed turn not stored", response_id=turn.response["id"], reason=error.message)


def stored_input(body: Json) -> list[Json]:
    """The items that the client sent in this turn, each with an id; ids that the client gave are kept.

    What asks for a checkpoint is no part of a conversation.
    """
    return [identified(item) for item in input_items(body) if item.get("type") != TRIGGER]


def identified(item: Json) -> Json:
    """An item as it is stored: with its type and an id."""
    kind = item.get("type") or "message"
    return {"type": kind, **item} | {"type": kind, "id": item.get("id") or item_id(kind)}
