"""Writing a turn: once, whole, and before anybody is told that it is complete."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

import structlog

from attache_core.errors import StoreError, UpstreamError
from attache_core.events.error_codes import BAD_ANSWER
from attache_core.events.event import Event
from attache_core.json_codec import Json
from attache_core.storage.store import Store, StoredTurn
from attache_core.turn.below import Below
from attache_core.turn.references import resolve_references
from attache_core.types.ids import item_id, new_id
from attache_core.types.turn import TurnRequest, input_items

_log = structlog.get_logger(__name__)


async def persist(turn: TurnRequest, below: Below, store: Store) -> AsyncGenerator[Event, None]:
    """Run the turn below under an id of ours and write it in one transaction before its terminal event is released.

    What is stored are the items that the input refers to, never the references.

    Nothing is written when the client goes away, when the turn is refused or fails before its first event, or with
    `store: false`. A turn that fails after that is written as failed, so that nothing continues from it.

    Raises:
        ClientError: 404, the input refers to an item that is not stored.
        StoreError: the turn could not be written, and the client must not believe that it was.
    """
    turn = turn.with_facts(response_id=turn.facts.response_id or new_id("resp"), stored=turn.store)
    if turn.store:
        turn = await resolve_references(turn, store)
    async with aclosing(below(turn)) as events:
        async for event in events:
            if event.is_terminal and turn.store:
                await _write(turn, event.data["response"], store)
            yield event


async def _write(turn: TurnRequest, response: Json, store: Store) -> None:
    failed = response.get("status") == "failed"
    if response.get("id") != turn.facts.response_id:
        if not failed:
            raise UpstreamError("What is below answered with another response.", code=BAD_ANSWER)
        return
    try:
        await store.save_turn(turn.facts.tenant, StoredTurn(response, stored_input(turn.body)))
    except StoreError as error:
        if not failed:
            raise
        _log.warning("failed turn not stored", response_id=response["id"], reason=error.message)


def stored_input(body: Json) -> list[Json]:
    """The items that the client sent in this turn, each with an id; ids that the client gave are kept."""
    return [_identified(item) for item in input_items(body)]


def _identified(item: Json) -> Json:
    kind = item.get("type") or "message"
    return {"type": kind, **item} | {"type": kind, "id": item.get("id") or item_id(kind)}
