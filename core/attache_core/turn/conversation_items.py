"""What a client adds to a conversation by itself, as it will stand there.

An item that is stored already, by its id, is the one that stands; a reference to one is nothing else. Source: OpenAI's
answers, `tests/cassettes/conversation_items`.
"""

from __future__ import annotations

from collections.abc import Sequence

from attache_core.json_codec import Json
from attache_core.storage.store import Store
from attache_core.turn.persist import identified
from attache_core.turn.references import item_not_found, stored_items
from attache_core.types.items import is_reference


async def items_to_add(tenant: str, given: Sequence[Json], store: Store) -> list[Json]:
    """The items to add, each with an id; costs no query where the client gave no id.

    Raises:
        ClientError: 404, a reference leads to nothing.
        StoreError: the store is out of reach.
    """
    named = list(dict.fromkeys(item["id"] for item in given if item.get("id") is not None))
    known = await stored_items(tenant, named, store) if named else {}
    for item in given:
        if is_reference(item) and item["id"] not in known:
            raise item_not_found(item["id"], "items")
    return [known.get(item.get("id", "")) or identified(item) for item in given]
