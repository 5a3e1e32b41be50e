"""From `previous_response_id`, `conversation` and item references to the whole conversation, in one query each.

What a turn continues is every item of its ancestors, in order: what the client sent and what was answered, the items
that only orchestration sees included. Where the first of these ancestors belongs to a conversation, it is preceded by
what it had read of that, which costs one query more. `instructions` are not inherited (API reference, "instructions").
"""

from __future__ import annotations

from collections.abc import Sequence

from attache_core.errors import ClientError
from attache_core.json_codec import Json
from attache_core.storage.conversations import conversation_not_found, duplicate_item
from attache_core.storage.store import CONTINUABLE, Store, StoredTurn
from attache_core.turn.pending_approvals import check_approvals
from attache_core.turn.pending_calls import OUTPUT_OF, check_calls
from attache_core.turn.references import resolve_references
from attache_core.types.conversation import conversation_id
from attache_core.types.turn import TurnRequest, input_items


async def rehydrate(turn: TurnRequest, store: Store) -> TurnRequest:
    """The turn with its history in front of its input, and items in the place of references to them.

    Raises:
        ClientError: an item, the conversation or the previous response is unknown (also when it is another tenant's);
            the previous response failed, or what it continues from was deleted; the input repeats an item of the
            conversation; or the calls and outputs of the conversation do not belong together.
        StoreError: the store is out of reach.
    """
    turn = await with_history(turn, store)
    items = input_items(turn.body)
    check_calls(items)
    check_approvals(items)
    return turn


async def with_history(turn: TurnRequest, store: Store) -> TurnRequest:
    """The same, whether or not the calls and outputs belong together. Raises likewise."""
    turn = await resolve_references(turn, store)
    history = await _history(turn, store)
    if not history:
        return turn.with_facts(history_items=0)
    return turn.with_body(input=history + input_items(turn.body)).with_facts(history_items=len(history))


async def _history(turn: TurnRequest, store: Store) -> list[Json]:
    previous_id, named = turn.body.get("previous_response_id"), conversation_id(turn.body)
    if named is not None:
        return await _conversation_items(turn, named, store)
    return [] if previous_id is None else await _chain_items(turn.facts.tenant, previous_id, store)


async def _conversation_items(turn: TurnRequest, named: str, store: Store) -> list[Json]:
    facts = turn.facts
    items = await store.conversations.load_history(facts.tenant, named, facts.conversation_revision)
    if items is None:
        raise conversation_not_found(named, "conversation")
    _check_new(input_items(turn.body), {item.get("id") for item in items})
    return _without_cut_off_calls(items)


async def _chain_items(tenant: str, previous_id: str, store: Store) -> list[Json]:
    chain = await store.load_chain(tenant, previous_id)
    _check_continuable(previous_id, chain)
    first = chain[0].response
    before = [] if first.get("conversation") is None else await store.conversations.load_history_of(tenant, first["id"])
    return [*_without_cut_off_calls(before), *history_items(chain)]


def history_items(chain: Sequence[StoredTurn]) -> list[Json]:
    """All items of a chain of turns, oldest first, without calls that were cut off while the model wrote them."""
    items: list[Json] = []
    for stored in chain:
        items += stored.input
        items += _without_cut_off_calls(stored.output or ())
    return items


def _check_new(given: Sequence[Json], known: set[object]) -> None:
    """No item of the input is in the conversation already, or twice in the input."""
    for item in given:
        item_id = item.get("id")
        if item_id is not None and item_id in known:
            raise duplicate_item(str(item_id))
        known.add(item_id)


def _check_continuable(previous_id: str, chain: Sequence[StoredTurn]) -> None:
    if not chain:
        raise ClientError(
            f"Previous response with id '{previous_id}' not found.",
            param="previous_response_id",
            code="previous_response_not_found",
        )
    if chain[0].response.get("previous_response_id") is not None:
        raise ClientError(
            f"Previous response with id '{previous_id}' continues from a response that was deleted, and cannot be "
            "continued: send the whole conversation as 'input' instead.",
            param="previous_response_id",
            code="previous_response_not_found",
        )
    status = chain[-1].response.get("status")
    if status not in CONTINUABLE:
        raise ClientError(
            f"Previous response with id '{previous_id}' has status '{status}' and cannot be continued: "
            "continue an earlier response instead.",
            param="previous_response_id",
            code="previous_response_not_continuable",
        )


def _without_cut_off_calls(items: Sequence[Json]) -> list[Json]:
    return [item for item in items if item.get("status") != "incomplete" or item.get("type") not in OUTPUT_OF]
