"""Item references: an input item that is only the id of a stored one becomes that item.

A turn is stored with what its references stood for, so that no later turn depends on them. Source: API reference,
"input", item reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus

from attache_core.errors import ClientError
from attache_core.json_codec import Json
from attache_core.storage.store import Store
from attache_core.types.items import is_reference
from attache_core.types.turn import TurnRequest, input_items
from attache_core.types.violation import quoted


async def resolve_references(turn: TurnRequest, store: Store) -> TurnRequest:
    """The turn with the items that its input refers to.

    Costs one query, and only when there is a reference; another one for items that are in a conversation alone.

    Raises:
        ClientError: 404, an item is not stored, or belongs to another tenant or to a failed turn; 400, there are more
            references than one request may have.
        StoreError: the store is out of reach.
    """
    items = input_items(turn.body)
    wanted = list(dict.fromkeys(str(item.get("id")) for item in items if is_reference(item)))
    if not wanted:
        return turn
    found = await stored_items(turn.facts.tenant, wanted, store)
    for item_id in wanted:
        if item_id not in found:
            raise item_not_found(item_id)
    return turn.with_body(input=[_resolved(item, found) for item in items])


async def stored_items(tenant: str, item_ids: Sequence[str], store: Store) -> dict[str, Json]:
    """The items of these ids, wherever they are stored, by id; an id that is unknown is left out.

    Raises:
        ClientError: 400, more ids or bytes than the store's limits allow.
        StoreError: the store is out of reach.
    """
    found = await store.load_items(tenant, item_ids)
    missing = [item_id for item_id in item_ids if item_id not in found]
    return found | await store.conversations.load_items(tenant, missing) if missing else found


def _resolved(item: Json, found: dict[str, Json]) -> Json:
    return found[str(item.get("id"))] if is_reference(item) else item


def item_not_found(item_id: str, param: str = "input") -> ClientError:
    """404, for a reference to nothing."""
    message = f"Item with id {quoted(item_id)} not found."
    return ClientError(message, http_status=HTTPStatus.NOT_FOUND, param=param)
