"""Conversations over SQLAlchemy.

Knows in which order the statements of a call are sent; the statements are in `conversation_statements`. Invariants: a
transaction that changes a conversation begins with the update of its row, which other changes of it wait for; what is
written at the end of a turn is written only while its lease is held.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import Row, and_, delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from attache_core.json_codec import Json, decode_exactly, encode
from attache_core.storage import conversation_statements as sql
from attache_core.storage.conversation_tables import conversation_items, conversation_turns, conversations
from attache_core.storage.conversations import (
    Conversation,
    Conversations,
    Lease,
    conversation_changed,
    conversation_not_found,
    duplicate_item,
    item_already_in_conversation,
)
from attache_core.storage.database import Database
from attache_core.storage.limits import StoreLimits
from attache_core.storage.row import is_key
from attache_core.types.paging import ItemPage, Page, cursor_not_found

_columns = conversation_items.c


class SqlConversations(Conversations):
    """Conversations in a database."""

    def __init__(self, database: Database, limits: StoreLimits) -> None:
        self._database = database
        self._limits = limits
        self._history = sql.history_statement(limits)
        self._history_of = sql.history_of_statement(limits)
        self._found_items = sql.found_items_statement(limits)

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
        async with self._database.write("create_conversation") as connection:
            await connection.execute(insert(conversations), row)
            await _insert_items(connection, tenant, conversation.id, items, first=0)

    async def load(self, tenant: str, conversation_id: str) -> Conversation | None:
        """See `Conversations.load`."""
        if not _are_keys(tenant, conversation_id):
            return None
        statement = select(conversations.c.created_at, conversations.c.metadata).where(sql.this_conversation)
        rows = await self._database.read("load_conversation", statement, _this(tenant, conversation_id))
        return _conversation(conversation_id, rows[0]) if rows else None

    async def update(self, tenant: str, conversation_id: str, metadata: Json) -> Conversation | None:
        """See `Conversations.update`."""
        if not _are_keys(tenant, conversation_id):
            return None
        statement = update(conversations).where(sql.this_conversation).values(metadata=encode(metadata))
        returned = statement.returning(conversations.c.created_at, conversations.c.metadata)
        async with self._database.write("update_conversation") as connection:
            row = (await connection.execute(returned, _this(tenant, conversation_id))).one_or_none()
        return None if row is None else _conversation(conversation_id, row)

    async def delete(self, tenant: str, conversation_id: str) -> bool:
        """See `Conversations.delete`."""
        if not _are_keys(tenant, conversation_id):
            return False
        this = _this(tenant, conversation_id)
        statement = delete(conversations).where(sql.this_conversation).returning(conversations.c.revision)
        async with self._database.write("delete_conversation") as connection:
            revision = (await connection.execute(statement, this)).scalar_one_or_none()
            if revision is None:
                return False
            await connection.execute(sql.remove_statement(), {**this, "at": revision})
            await connection.execute(sql.purge_statement(), this)
        return True

    async def add_items(self, tenant: str, conversation_id: str, items: Sequence[Json]) -> bool:
        """See `Conversations.add_items`."""
        if not _are_keys(tenant, conversation_id):
            return False
        this = _this(tenant, conversation_id)
        async with self._database.write("add_conversation_items") as connection:
            changes = {**this, "steps": len(items)}
            revision = (await connection.execute(sql.advance_statement(), changes)).scalar_one_or_none()
            if revision is None:
                return False
            if await _present(connection, this, items) is not None:
                raise item_already_in_conversation()
            await _insert_items(connection, tenant, conversation_id, items, first=revision - len(items))
        return True

    async def list_items(self, tenant: str, conversation_id: str, page: Page) -> ItemPage | None:
        """See `Conversations.list_items`; two queries, and a third to begin after an item."""
        if await self.load(tenant, conversation_id) is None:
            return None
        this = _this(tenant, conversation_id)
        position = None if page.after is None else await self._position(this, page.after, page)
        statement = sql.page_statement(self._limits, page, position)
        rows = await self._database.read("list_conversation_items", statement, this)
        read = [decode_exactly(item) for (item,) in rows[: page.limit] if item]
        return ItemPage(read, len(rows) > len(read))

    async def load_item(self, tenant: str, conversation_id: str, item_id: str) -> Json | None:
        """See `Conversations.load_item`."""
        if not _are_keys(tenant, conversation_id, item_id):
            return None
        statement = select(_columns.item).where(sql.present_items, _columns.id == item_id)
        latest = statement.order_by(_columns.position.desc()).limit(1)
        rows = await self._database.read("load_conversation_item", latest, _this(tenant, conversation_id))
        return decode_exactly(rows[0][0]) if rows else None

    async def remove_item(self, tenant: str, conversation_id: str, item_id: str) -> bool:
        """See `Conversations.remove_item`."""
        if not _are_keys(tenant, conversation_id, item_id):
            return False
        this = _this(tenant, conversation_id)
        async with self._database.write("remove_conversation_item") as connection:
            revision = (await connection.execute(sql.advance_statement(), {**this, "steps": 1})).scalar_one_or_none()
            if revision is None:
                return False
            removal = sql.remove_statement().where(_columns.id == item_id).returning(_columns.position)
            removed = (await connection.execute(removal, {**this, "at": revision - 1})).scalars().all()
            if removed:
                await connection.execute(sql.break_lease_statement(), {**this, "at": min(removed)})
                await connection.execute(sql.purge_statement().where(_columns.id == item_id), this)
        return bool(removed)

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
        async with self._database.write("lease_conversation") as connection:
            revision = (await connection.execute(sql.lease_statement(), parameters)).scalar_one_or_none()
        if revision is not None:
            return Lease(conversation_id, owner, revision)
        if await self.load(tenant, conversation_id) is None:
            raise conversation_not_found(conversation_id, "conversation")
        return None

    async def renew(self, tenant: str, lease: Lease, ttl_s: float) -> bool:
        """See `Conversations.renew`."""
        parameters = {**_held(tenant, lease), "ttl_ms": _ms(ttl_s)}
        async with self._database.write("renew_conversation") as connection:
            return (await connection.execute(sql.renew_statement(), parameters)).rowcount > 0

    async def release(self, tenant: str, lease: Lease) -> None:
        """See `Conversations.release`."""
        async with self._database.write("release_conversation") as connection:
            await connection.execute(sql.release_statement(), _held(tenant, lease))

    async def append(self, tenant: str, lease: Lease, items: Sequence[Json]) -> None:
        """See `Conversations.append`."""
        async with self._database.write("append_to_conversation") as connection:
            await append_turn(connection, tenant, lease, items)

    async def _position(self, this: Mapping[str, object], item_id: str, page: Page) -> int:
        rows: Sequence[Row[int]] = []
        if is_key(item_id):
            statement = select(_columns.position).where(sql.present_items, _columns.id == item_id)
            last = _columns.position.desc() if page.order == "asc" else _columns.position.asc()
            rows = await self._database.read("find_conversation_item", statement.order_by(last).limit(1), this)
        if not rows:
            raise cursor_not_found(item_id)
        return rows[0][0]

    def _items_of(self, rows: Sequence[Row[int, int, bytes]]) -> list[Json]:
        if not rows or rows[0][0] == 0:
            return []
        self._limits.check_conversation(rows[0][0], rows[0][1])
        return [decode_exactly(item) for _, _, item in rows]


async def append_turn(
    connection: AsyncConnection, tenant: str, lease: Lease, items: Sequence[Json], response_id: str | None = None
) -> None:
    """End a lease with the items of its turn, in the transaction of `connection`; see `Conversations.append`.

    `response_id` names the stored response, which from here on knows what it has read.
    """
    ended = await connection.execute(sql.end_lease_statement(), {**_held(tenant, lease), "steps": len(items)})
    revision = ended.scalar_one_or_none()
    if revision is None:
        raise conversation_changed(lease.conversation_id)
    duplicate = await _present(connection, _this(tenant, lease.conversation_id), items)
    if duplicate is not None:
        raise duplicate_item(duplicate)
    await _insert_items(connection, tenant, lease.conversation_id, items, first=revision - len(items))
    if response_id is not None:
        row = {"conversation_id": lease.conversation_id, "revision": lease.revision}
        await connection.execute(insert(conversation_turns), {"tenant": tenant, "response_id": response_id, **row})


async def forget_turn(connection: AsyncConnection, tenant: str, response_id: str) -> None:
    """The stored response is no more: removed items that it alone had read are deleted."""
    columns = conversation_turns.c
    statement = delete(conversation_turns).where(columns.tenant == tenant, columns.response_id == response_id)
    found = await connection.execute(statement.returning(columns.conversation_id, columns.revision))
    read = found.one_or_none()
    if read is not None:
        this = _this(tenant, read[0])
        await connection.execute(sql.advance_statement(), {**this, "steps": 0})
        had_read = and_(_columns.position < read[1], _columns.removed >= read[1])
        await connection.execute(sql.purge_statement().where(had_read), this)


async def _insert_items(
    connection: AsyncConnection, tenant: str, conversation_id: str, items: Sequence[Json], *, first: int
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
        await connection.execute(insert(conversation_items), rows)


async def _present(connection: AsyncConnection, this: Mapping[str, object], items: Sequence[Json]) -> str | None:
    """The id of an item that the conversation holds already, if there is one."""
    for start in range(0, len(items), _IDS_PER_QUERY):
        ids = [key for item in items[start : start + _IDS_PER_QUERY] if (key := _key(item))]
        found = await connection.execute(
            select(_columns.id).where(sql.present_items, _columns.id.in_(ids)).limit(1), this
        )
        item_id: str | None = found.scalar_one_or_none()
        if item_id is not None:
            return item_id
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


def _conversation(conversation_id: str, row: Row[int, bytes]) -> Conversation:
    return Conversation(conversation_id, row[0], decode_exactly(row[1]))


def _ms(seconds: float) -> int:
    return int(seconds * 1000)
