"""What the turn and the endpoints of conversations may ask of a store, and what it refuses.

One call is one transaction. No call is open across a model, tool or client await: a turn holds its conversation by a
lease, which ends by itself when nobody renews it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Protocol

from attache_core.errors import ClientError
from attache_core.json_codec import Json
from attache_core.types.paging import ItemPage, Page
from attache_core.types.violation import quoted


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation without its items. `created_at` is in seconds since the epoch."""

    id: str
    created_at: int
    metadata: Json


@dataclass(frozen=True, slots=True)
class Lease:
    """The right of one turn to add its items to a conversation, and what it may read of it until then.

    Attributes:
        owner: who holds it; no two turns have the same.
        revision: the state of the conversation that the turn reads, see `load_history`.
    """

    conversation_id: str
    owner: str
    revision: int


class Conversations(Protocol):
    """Conversations by id, each belonging to a tenant. Another tenant's id is as unknown as no id at all.

    Every call may raise StoreError: the store is out of reach, and nothing was written. None and False say that the
    conversation, or the item, is unknown.
    """

    async def create(self, tenant: str, conversation: Conversation, items: Sequence[Json]) -> None:
        """Write a new conversation; each item has an id, and ids may repeat. The first item is the oldest.

        Raises:
            ValueError: its id, or the tenant, is no text that can be a key (a bug of the caller).
        """
        ...

    async def load(self, tenant: str, conversation_id: str) -> Conversation | None:
        """The conversation without its items."""
        ...

    async def update(self, tenant: str, conversation_id: str, metadata: Json) -> Conversation | None:
        """Replace its metadata; the conversation as it is now."""
        ...

    async def delete(self, tenant: str, conversation_id: str) -> bool:
        """Remove it with its items, but for those that a stored response has read. A turn that holds it cannot end."""
        ...

    async def add_items(self, tenant: str, conversation_id: str, items: Sequence[Json]) -> bool:
        """Add items with ids at the end; in front of those of a turn that holds it, which has not read them.

        Raises:
            ClientError: 400 `item_already_in_conversation`.
        """
        ...

    async def list_items(self, tenant: str, conversation_id: str, page: Page) -> ItemPage | None:
        """A page of its items, which is shorter than asked for where it would be larger than the store's limits allow.

        Raises:
            ClientError: 404, `page.after` is none of them.
        """
        ...

    async def load_item(self, tenant: str, conversation_id: str, item_id: str) -> Json | None:
        """One of its items; of several with one id, the last."""
        ...

    async def remove_item(self, tenant: str, conversation_id: str, item_id: str) -> bool:
        """Take every item of that id out of it. A turn that has read one of them loses its lease."""
        ...

    async def load_items(self, tenant: str, item_ids: Collection[str]) -> dict[str, Json]:
        """The items of these ids, whatever conversation they are in, by id; see `Store.load_items`.

        Raises:
            ClientError: 400, more ids or bytes than the store's limits allow.
        """
        ...

    async def load_history(self, tenant: str, conversation_id: str, revision: int | None = None) -> list[Json] | None:
        """Its items, oldest first, in one query: as of a lease's `revision`, or now.

        Raises:
            ClientError: 400 `conversation_too_long`, more items or bytes than the store's limits allow.
        """
        ...

    async def load_history_of(self, tenant: str, response_id: str) -> list[Json]:
        """The items that the stored response of that id had read of its conversation; see `load_history`."""
        ...

    async def lease(self, tenant: str, conversation_id: str, owner: str, ttl_s: float) -> Lease | None:
        """Hold it for `ttl_s` seconds of the store's clock; None while another turn does.

        Raises:
            ClientError: 404, the conversation is unknown.
        """
        ...

    async def renew(self, tenant: str, lease: Lease, ttl_s: float) -> bool:
        """Hold it for `ttl_s` seconds from now; False when the lease was lost."""
        ...

    async def release(self, tenant: str, lease: Lease) -> None:
        """Let others have it; harmless when the lease was lost."""
        ...

    async def append(self, tenant: str, lease: Lease, items: Sequence[Json]) -> None:
        """End the lease by adding the items of its turn, whose response is not stored. `Store.save_turn` stores it too.

        Raises:
            ClientError: 409 `conversation_changed`, the lease was lost, or the conversation deleted; 400, an item of
                that id is there already. Nothing was written.
        """
        ...


def conversation_not_found(conversation_id: str, param: str | None = None) -> ClientError:
    """404, for an id that is unknown or another tenant's."""
    message = f"Conversation with id {quoted(conversation_id)} not found."
    return ClientError(message, http_status=HTTPStatus.NOT_FOUND, param=param)


def item_already_in_conversation() -> ClientError:
    """400, for an item that is added twice."""
    return ClientError("Item already in conversation", code="item_already_in_conversation", param="items")


def duplicate_item(item_id: str) -> ClientError:
    """400, for a turn that sends again what its conversation holds."""
    message = f"Duplicate item found with id {quoted(item_id)}. Remove duplicate items from your input and try again."
    return ClientError(message, param="input")


def conversation_changed(conversation_id: str) -> ClientError:
    """409, for a turn whose end cannot be written."""
    return ClientError(
        f"Conversation with id {quoted(conversation_id)} changed while the response was created: it was deleted, an "
        "item that had been read was removed, or another turn took its place. Nothing was stored; send the request "
        "again.",
        http_status=HTTPStatus.CONFLICT,
        code="conversation_changed",
        param="conversation",
    )
