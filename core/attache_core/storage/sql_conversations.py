"""Conversations over SQLAlchemy.

Knows in which order the statements of a call are sent; the statements are in `conversation_statements`. Invariants: a
transaction that changes a conversation begins with the update of its row, which other changes of it wait for; what is
written at the end of a turn is written only while its lease is held. A lease need not outlive the machine, whose turns
end with it, so nothing waits for the disk to get, keep or end one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import get_args

from attache_core.json_codec import Json, decode_all_exactly, decode_exactly, encode
from attache_core.storage import conversation_statements as sql
from attache_core.storage.conversations import (
    Conversation,
    Conversations,
    Lease,
    conversation_changed,
    conversation_not_found,
    duplicate_item,
    item_already_in_conversation,
)
from attache_core.storage.database import Database, Transaction
from attache_core.storage.limits import StoreLimits
from attache_core.storage.row import is_key
from attache_core.types.paging import ItemPage, Order, Page, cursor_not_found


class SqlConversations(Conversations):
    """Conversations in a database."""

    def __init__(self, database: Database, limits: StoreLimits) -> None:
        self._database = database
        self._limits = limits
        self._history = sql.history_statement(limits)
        self._history_of = sql.history_of_statement(limits)
        self._found_items = sql.found_items_statement(limits)
        self._pages = {order: sql.page_statement(limits, order) for order in get_args(Order)}

    async def create(self, tenant: str, conversation: Conversation, items: Sequence[Json]) -> None:
        """See `Conversations.create`."""
        if not _are_keys(tenant, conversation.id):
            raise ValueError("a conversation needs a tenant and an id of plain text")
        row = {
            "tenant": tenant,
            "id": conversation.id,
            "created_at": conversation.created_at,
            "revision": len(items),
            "metadata": encode(conversation.metadata),
        }

        async def create(transaction: Transaction) -> None:
            await transaction.change(sql.create_statement(), row)
            await _insert_items(transaction, tenant, conversation.id, items, first=0)

        await self._database.write("create_conversation", create)

    async def load(self, tenant: str, conversation_id: str) -> Conversation | None:
        """See `Conversations.load`."""
        if not _are_keys(tenant, conversation_id):
            return None
        rows = await self._database.read("load_conversation", sql.load_statement(), _this(tenant, conversation_id))
        return _conversation(conversation_id, rows[0]) if rows else None

    async def update(self, tenant: str, conversation_id: str, metadata: Json) -> Conversation | None:
        """See `Conversations.update`."""
        if not _are_keys(tenant, conversation_id):
            return None
        parameters = {**_this(tenant, conversation_id), "new_metadata": encode(metadata)}
        rows = await self._database.change("update_conversation", sql.update_statement(), parameters)
        return _conversation(conversation_id, rows[0]) if rows else None

    async def delete(self, tenant: str, conversation_id: str) -> bool:
        """See `Conversations.delete`."""
        if not _are_keys(tenant, conversation_id):
            return False
        this = _this(tenant, conversation_id)

        async def delete_it(transaction: Transaction) -> bool:
            deleted = await transaction.rows(sql.delete_statement(), this)
            for (revision,) in deleted:
                await transaction.change(sql.remove_statement(), {**this, "at": revision})
                await transaction.change(sql.purge_statement(), this)
            return bool(deleted)

        return await self._database.write("delete_conversation", delete_it)

    async def add_items(self, tenant: str, conversation_id: str, items: Sequence[Json]) -> bool:
        """See `Conversations.add_items`."""
        if not _are_keys(tenant, conversation_id):
            return False
        this = _this(tenant, conversation_id)

        async def add(transaction: Transaction) -> bool:
            advanced = await transaction.rows(sql.advance_statement(), {**this, "steps": len(items)})
            for (revision,) in advanced:
                if await _present(transaction, this, items) is not None:
                    raise item_already_in_conversation()
                await _insert_items(transaction, tenant, conversation_id, items, first=revision - len(items))
            return bool(advanced)

        return await self._database.write("add_conversation_items", add)

    async def list_items(self, tenant: str, conversation_id: str, page: Page) -> ItemPage | None:
        """See `Conversations.list_items`; two queries, and a third to begin after an item."""
        if await self.load(tenant, conversation_id) is None:
            return None
        this = _this(tenant, conversation_id)
        position = None if page.after is None else await self._position(this, page.after, page)
        statement, parameters = self._pages[page.order], {**this, "after": position, "rows": page.limit + 1}
        rows = await self._database.read("list_conversation_items", statement, parameters)
        read = [decode_exactly(item) for (item,) in rows[: page.limit] if item]
        return ItemPage(read, len(rows) > len(read))

    async def load_item(self, tenant: str, conversation_id: str, item_id: str) -> Json | None:
        """See `Conversations.load_item`."""
        if not _are_keys(tenant, conversation_id, item_id):
            return None
        parameters = {**_this(tenant, conversation_id), "item_id": item_id}
        rows = await self._database.read("load_conversation_item", sql.item_statement(), parameters)
        return decode_exactly(rows[0][0]) if rows else None

    async def remove_item(self, tenant: str, conversation_id: str, item_id: str) -> bool:
        """See `Conversations.remove_item`."""
        if not _are_keys(tenant, conversation_id, item_id):
            return False
        this = {**_this(tenant, conversation_id), "item_id": item_id}

        async def remove(transaction: Transaction) -> bool:
            removed: Sequence[tuple[int]] = []
            for (revision,) in await transaction.rows(sql.advance_statement(), {**this, "steps": 1}):
                removed = await transaction.rows(sql.remove_item_statement(), {**this, "at": revision - 1})
            if removed:
                await transaction.change(
                    sql.break_lease_statement(), {**this, "at": min(position for (position,) in removed)}
                )
                await transaction.change(sql.purge_item_statement(), this)
            return bool(removed)

        return await self._database.write("remove_conversation_item", remove)

    async def load_items(self, tenant: str, item_ids: Collection[str]) -> dict[str, Json]:
        """See `Conversations.load_items`."""
        self._limits.check_items(len(item_ids))
        parameters = {"the_tenant": tenant, "ids": [item_id for item_id in item_ids if is_key(item_id)]}
        rows = await self._database.read("load_items_of_conversations", self._found_items, parameters)
        if rows:
            self._limits.check_items(0, rows[0][0])
        return {item_id: decode_exactly(item) for _, item_id, item in rows}

    async def load_history(self, tenant: str, conversation_id: str, revision: int | None = None) -> list[Json] | None:
        """See `Conversations.load_history`."""
        if not _are_keys(tenant, conversation_id):
            return None
        parameters = {**_this(tenant, conversation_id), "revision": revision}
        rows = await self._database.read("load_conversation_history", self._history, parameters)
        return self._items_of(rows) if rows else None

    async def load_history_of(self, tenant: str, response_id: str) -> list[Json]:
        """See `Conversations.load_history_of`."""
        if not _are_keys(tenant, response_id):
            return []
        rows = await self._database.read("load_history_of_turn", self._history_of, _this(tenant, response_id))
        return self._items_of(rows)

    async def lease(self, tenant: str, conversation_id: str, owner: str, ttl_s: float) -> Lease | None:
        """See `Conversations.lease`."""
        if not _are_keys(tenant, conversation_id):
            raise conversation_not_found(conversation_id, "conversation")
        parameters = {**_this(tenant, conversation_id), "owner": owner, "ttl_ms": _ms(ttl_s)}
        leased = await self._database.change("lease_conversation", sql.lease_statement(), parameters, durable=False)
        if leased:
            return Lease(conversation_id, owner, leased[0][0])
        if await self.load(tenant, conversation_id) is None:
            raise conversation_not_found(conversation_id, "conversation")
        return None

    async def renew(self, tenant: str, lease: Lease, ttl_s: float) -> bool:
        """See `Conversations.renew`."""
        parameters = {**_held(tenant, lease), "ttl_ms": _ms(ttl_s)}
        return bool(await self._database.change("renew_conversation", sql.renew_statement(), parameters, durable=False))

    async def release(self, tenant: str, lease: Lease) -> None:
        """See `Conversations.release`."""
        held = _held(tenant, lease)
        await self._database.change("release_conversation", sql.release_statement(), held, durable=False)

    async def append(self, tenant: str, lease: Lease, items: Sequence[Json]) -> None:
        """See `Conversations.append`."""
        await self._database.write("append_to_conversation", lambda it: append_turn(it, tenant, lease, items))

    async def _position(self, this: Mapping[str, object], item_id: str, page: Page) -> int:
        rows: Sequence[tuple[int]] = []
        if is_key(item_id):
            parameters = {**this, "item_id": item_id}
            rows = await self._database.read("find_conversation_item", sql.position_statement(page.order), parameters)
        if not rows:
            raise cursor_not_found(item_id)
        return rows[0][0]

    def _items_of(self, rows: Sequence[tuple[int, int, bytes]]) -> list[Json]:
        if not rows or rows[0][0] == 0:
            return []
        self._limits.check_conversation(rows[0][0], rows[0][1])
        return decode_all_exactly([item for _, _, item in rows])


async def append_turn(
    transaction: Transaction, tenant: str, lease: Lease, items: Sequence[Json], response_id: str | None = None
) -> None:
    """End a lease with the items of its turn, in a transaction; see `Conversations.append`.

    `response_id` names the stored response, which from here on knows what it has read.
    """
    ended = await transaction.rows(sql.end_lease_statement(), {**_held(tenant, lease), "steps": len(items)})
    if not ended:
        raise conversation_changed(lease.conversation_id)
    duplicate = await _present(transaction, _this(tenant, lease.conversation_id), items)
    if duplicate is not None:
        raise duplicate_item(duplicate)
    await _insert_items(transaction, tenant, lease.conversation_id, items, first=ended[0][0] - len(items))
    if response_id is not None:
        row = {"conversation_id": lease.conversation_id, "revision": lease.revision}
        await transaction.change(sql.insert_turn_statement(), {"tenant": tenant, "response_id": response_id, **row})


async def forget_turn(transaction: Transaction, tenant: str, response_id: str) -> None:
    """The stored response is no more: removed items that it alone had read are deleted."""
    for conversation_id, revision in await transaction.rows(sql.forget_turn_statement(), _this(tenant, response_id)):
        this = _this(tenant, conversation_id)
        await transaction.rows(sql.advance_statement(), {**this, "steps": 0})
        await transaction.change(sql.purge_read_statement(), {**this, "at": revision})


async def _insert_items(
    transaction: Transaction, tenant: str, conversation_id: str, items: Sequence[Json], *, first: int
) -> None:
    rows = [
        {
            "tenant": tenant,
            "conversation_id": conversation_id,
            "position": first + number,
            "id": _key(item),
            "item": encode(item),
        }
        for number, item in enumerate(items)
    ]
    if rows:
        await transaction.change_each(sql.insert_item_statement(), rows)


async def _present(transaction: Transaction, this: Mapping[str, object], items: Sequence[Json]) -> str | None:
    """The id of an item that the conversation holds already, if there is one."""
    for start in range(0, len(items), _IDS_PER_QUERY):
        ids = [key for item in items[start : start + _IDS_PER_QUERY] if (key := _key(item))]
        found = await transaction.rows(sql.present_statement(), {**this, "ids": ids}) if ids else ()
        if found:
            return found[0][0]
    return None


def _key(item: Json) -> str:
    """Its id; empty where that is no text that a database takes: it can then not be asked for."""
    item_id = item.get("id")
    return item_id if isinstance(item_id, str) and is_key(item_id) else ""


_IDS_PER_QUERY = 1_000
"""What any database takes as parameters of one statement."""


def _this(tenant: str, of_id: str) -> dict[str, object]:
    return {"the_tenant": tenant, "the_id": of_id}


def _held(tenant: str, lease: Lease) -> dict[str, object]:
    return {**_this(tenant, lease.conversation_id), "owner": lease.owner}


def _are_keys(*texts: str) -> bool:
    return all(map(is_key, texts))


def _conversation(conversation_id: str, row: tuple[int, bytes]) -> Conversation:
    return Conversation(conversation_id, row[0], decode_exactly(row[1]))


def _ms(seconds: float) -> int:
    return int(seconds * 1000)
