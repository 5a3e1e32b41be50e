"""From `previous_response_id` and item references to the whole conversation, in one query each.

What a turn continues is every item of its ancestors, in order: what the client sent and what was answered, the items
that only orchestration sees included. `instructions` are not inherited (API reference, "instructions").
"""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus

from attache_core.errors import ClientError
from attache_core.json_codec import Json
from attache_core.storage.store import Store, StoredTurn
from attache_core.turn.pending_calls import OUTPUT_OF, check_calls
from attache_core.turn.references import resolve_references
from attache_core.types.conversation import conversation_id
from attache_core.types.turn import TurnRequest, input_items
from attache_core.types.violation import quoted

CONTINUABLE = frozenset({"completed", "incomplete"})
"""The statuses of a response that may be continued: a failed one has no trustworthy end."""


async def rehydrate(turn: TurnRequest, store: Store) -> TurnRequest:
    """The turn with its history in front of its input, and items in the place of references to them.

    Raises:
        ClientError: an item, the conversation or the previous response is unknown (also when it is another tenant's);
            the previous response failed, or what it continues from was deleted; or the calls and outputs of the
            conversation do not belong together.
        StoreError: the store is out of reach.
    """
    _refuse_conversation(turn)
    turn = await resolve_references(turn, store)
    previous_id = turn.body.get("previous_response_id")
    if previous_id is None:
        check_calls(input_items(turn.body))
        return turn.with_facts(history_items=0)
    chain = await store.load_chain(turn.facts.tenant, previous_id)
    _check_continuable(previous_id, chain)
    history = history_items(chain)
    items = history + input_items(turn.body)
    check_calls(items)
    return turn.with_body(input=items).with_facts(history_items=len(history))


def history_items(chain: Sequence[StoredTurn]) -> list[Json]:
    """All items of a chain of turns, oldest first, without calls that were cut off while the model wrote them."""
    items: list[Json] = []
    for stored in chain:
        items += stored.input
        items += (item for item in stored.response["output"] if not _is_cut_off_call(item))
    return items


def _refuse_conversation(turn: TurnRequest) -> None:
    named = conversation_id(turn.body)
    if named is not None:
        message = f"Conversation with id {quoted(named)} not found."
        raise ClientError(message, http_status=HTTPStatus.NOT_FOUND, param="conversation")


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


def _is_cut_off_call(item: Json) -> bool:
    return item.get("type") in OUTPUT_OF and item.get("status") == "incomplete"
