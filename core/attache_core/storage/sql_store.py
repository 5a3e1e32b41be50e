"""The store over SQLAlchemy: a few statements, built once, that SQLite and PostgreSQL understand alike.

Knows the tables and how to ask for them; unaware of connections (`database`) and of what a response means.
Invariant: the tenant is part of every query's condition, never a filter after it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from importlib import import_module
from types import ModuleType
from typing import TypeVarTuple

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Delete,
    Insert,
    Select,
    String,
    and_,
    bindparam,
    case,
    cast,
    delete,
    func,
    literal,
    select,
)
from sqlalchemy.sql.dml import ReturningDelete

from attache_core.json_codec import Json, decode_exactly
from attache_core.storage.conversations import Lease
from attache_core.storage.database import Database, Transaction
from attache_core.storage.expiry import (
    any_expired_statement,
    expire_statement,
    kept,
    lock_statement,
    oldest_statement,
)
from attache_core.storage.limits import DEFAULT_LIMITS, StoreLimits
from attache_core.storage.row import TurnRow, is_key, items_by_id, to_row, to_turn, to_turns, turn_items
from attache_core.storage.sql_approvals import SqlApprovals, forget_approvals
from attache_core.storage.sql_conversations import SqlConversations, append_turn, forget_turn
from attache_core.storage.store import Store, StoredTurn
from attache_core.storage.tables import items, responses

_Columns = TypeVarTuple("_Columns")


class SqlStore(Store):
    """Turns in a database. `open_store` makes one.

    Args:
        database: where the tables are.
        limits: the bounds of what one call may load.
    """

    def __init__(self, database: Database, limits: StoreLimits = DEFAULT_LIMITS) -> None:
        self._database = database
        self._conversations = SqlConversations(database, limits)
        self._limits = limits
        self._save = save_statement() if database.dialect == "postgresql" else None
        self._insert = insert_statement(database.dialect)
        self._point = point_statement(database.dialect)
        self._chain = chain_statement(limits)
        self._items = items_statement(limits)
        self._response = response_statement(limits)
        self._turn = turn_statement(limits)
        self._delete = delete_statement(limits)
        self._forget = forget_statement()
        self._any_expired = any_expired_statement()
        self._oldest = None if limits.retention_s is None else oldest_statement(limits.retention_s)
        self._expire = expire_statement()
        self._lock = lock_statement() if database.dialect == "postgresql" else None
        self._any = select(responses.c.id).limit(1)
        self._approvals = SqlApprovals(database, limits)

    @property
    def approvals(self) -> SqlApprovals:
        """See `Store.approvals`."""
        return self._approvals

    @property
    def conversations(self) -> SqlConversations:
        """See `Store.conversations`."""
        return self._conversations

    async def save_turn(self, tenant: str, turn: StoredTurn, lease: Lease | None = None) -> None:
        """See `Store.save_turn`. Raises ValueError when the response has no usable id."""
        row = to_row(tenant, turn)
        # In one order for all: two turns that hold the same items would else wait for one another.
        item_ids = sorted(items_by_id(turn))
        if lease is None and self._save is not None:
            await self._database.change("save_turn", self._save, {**row.values(), "item_ids": item_ids})
            return

        async def save(transaction: Transaction) -> None:
            if await self._insert_turn(transaction, row, item_ids) and lease is not None:
                await append_turn(transaction, tenant, lease, turn_items(turn), row.id)

        await self._database.write("save_turn", save)

    async def _insert_turn(self, transaction: Transaction, row: TurnRow, item_ids: Sequence[str]) -> bool:
        """Whether it was not there before."""
        if self._save is not None:
            return bool(await transaction.rows(self._save, {**row.values(), "item_ids": item_ids}))
        is_new = bool(await transaction.change(self._insert, row.values()))
        if is_new and item_ids:
            pointers = [{"tenant": row.tenant, "id": item_id, "response_id": row.id} for item_id in item_ids]
            await transaction.change_each(self._point, pointers)
        return is_new

    async def load_chain(self, tenant: str, response_id: str) -> list[StoredTurn]:
        """See `Store.load_chain`."""
        rows = await self._load_by_id("load_chain", self._chain, tenant, response_id)
        if rows:
            turns, size_bytes, *_ = rows[0]
            self._limits.check_chain(turns, size_bytes)
        return to_turns([row[2:] for row in rows])

    async def load_items(self, tenant: str, item_ids: Collection[str]) -> dict[str, Json]:
        """See `Store.load_items`."""
        self._limits.check_items(len(item_ids))
        parameters = {"tenant": tenant, "ids": [item_id for item_id in item_ids if is_key(item_id)]}
        rows = await self._database.read("load_items", self._items, parameters)
        if rows:
            self._limits.check_items(len(rows), rows[0][2])
        turns = {turn: items_by_id(to_turn(*stored)) for _, turn, _, first, *stored in rows if first}
        return {item_id: turns[turn][item_id] for item_id, turn, *_ in rows}

    async def load_response(self, tenant: str, response_id: str) -> Json | None:
        """See `Store.load_response`."""
        rows = await self._load_by_id("load_response", self._response, tenant, response_id)
        return decode_exactly(rows[0][0]) if rows else None

    async def load_turn(self, tenant: str, response_id: str) -> StoredTurn | None:
        """See `Store.load_turn`."""
        rows = await self._load_by_id("load_turn", self._turn, tenant, response_id)
        return to_turn(*rows[0]) if rows else None

    async def delete_turn(self, tenant: str, response_id: str) -> bool:
        """See `Store.delete_turn`."""
        if not (is_key(tenant) and is_key(response_id)):
            return False

        async def delete_it(transaction: Transaction) -> bool:
            deleted = await transaction.rows(self._delete, {"tenant": tenant, "response_id": response_id})
            await self._forget_turns(transaction, [(tenant, response_id, *row) for row in deleted])
            return bool(deleted)

        return await self._database.write("delete_turn", delete_it)

    async def remove_expired(self) -> int:
        """See `Store.remove_expired`."""
        if self._oldest is None:
            return 0
        oldest = await self._database.read("oldest_kept", self._oldest)
        parameters = {"oldest": oldest[0][0]}
        if not await self._database.read("any_expired", self._any_expired, parameters):
            return 0

        async def remove(transaction: Transaction) -> int:
            if self._lock is not None and not (await transaction.rows(self._lock))[0][0]:
                return 0
            removed = await transaction.rows(self._expire, parameters)
            await self._forget_turns(transaction, removed)
            return len(removed)

        return await self._database.write("remove_expired", remove)

    async def _forget_turns(self, transaction: Transaction, removed: Sequence[tuple[str, str, bytes, bytes]]) -> None:
        """Remove what leads to turns that are no more: their items, approvals, and what they had read."""
        pointers = [
            {"tenant": tenant, "response_id": response_id, "item_id": item_id}
            for tenant, response_id, *stored in removed
            for item_id in items_by_id(to_turn(*stored))
        ]
        pointers.sort(key=lambda pointer: (pointer["tenant"], pointer["item_id"]))
        if pointers:
            await transaction.change_each(self._forget, pointers)
        for tenant, response_id, *_ in removed:
            await forget_turn(transaction, tenant, response_id)
            await forget_approvals(transaction, tenant, response_id)

    async def check(self) -> None:
        """See `Store.check`: reads the table, so that a missing database and a missing schema both show."""
        await self._database.read("check", self._any)

    async def _load_by_id(
        self, operation: str, statement: Select[*_Columns], tenant: str, response_id: str
    ) -> Sequence[tuple[*_Columns]]:
        if not (is_key(tenant) and is_key(response_id)):
            return []
        return await self._database.read(operation, statement, {"tenant": tenant, "id": response_id})


def insert_statement(dialect: str) -> Insert:
    """Insert one row, unless its key is there. `dialect` is SQLAlchemy's name of it."""
    insert = _dialect(dialect).insert(responses)
    statement: Insert = insert.on_conflict_do_nothing(index_elements=responses.primary_key.columns)
    return statement


def point_statement(dialect: str) -> Insert:
    """Let an item's id lead to one turn, whatever turn it led to before."""
    insert = _dialect(dialect).insert(items)
    statement: Insert = insert.on_conflict_do_update(
        index_elements=items.primary_key.columns, set_={"response_id": insert.excluded.response_id}
    )
    return statement


def save_statement() -> Select[str]:
    """Both for all of `:item_ids` at once, on PostgreSQL; the id of the turn, unless its key was there."""
    turn = insert_statement("postgresql").returning(responses.c.tenant, responses.c.id).cte("turn")
    item_ids = func.unnest(bindparam("item_ids", type_=ARRAY(String)))
    pointers = select(turn.c.tenant, item_ids, turn.c.id)
    pointed = point_statement("postgresql").from_select(["tenant", "id", "response_id"], pointers)
    return select(turn.c.id).add_cte(pointed.cte("pointed"))


def _dialect(name: str) -> ModuleType:
    return import_module(f"sqlalchemy.dialects.{name}")  # each has an insert of its own; loading all takes long


def response_statement(limits: StoreLimits) -> Select[bytes]:
    """The response of `:tenant` and `:id`."""
    return select(responses.c.response).where(
        responses.c.tenant == bindparam("tenant"), responses.c.id == bindparam("id"), kept(limits)
    )


def turn_statement(limits: StoreLimits) -> Select[bytes, bytes]:
    """Input and response of `:tenant` and `:id`."""
    return response_statement(limits).with_only_columns(responses.c.input, responses.c.response)


def delete_statement(limits: StoreLimits) -> ReturningDelete[bytes, bytes]:
    """Remove the turn of `:tenant` and `:response_id`; what it held, as (input, response)."""
    turn = and_(responses.c.tenant == bindparam("tenant"), responses.c.id == bindparam("response_id"), kept(limits))
    return delete(responses).where(turn).returning(responses.c.input, responses.c.response)


def forget_statement() -> Delete:
    """Let `:item_id` lead nowhere, if it leads to `:response_id`."""
    return delete(items).where(
        items.c.tenant == bindparam("tenant"),
        items.c.id == bindparam("item_id"),
        items.c.response_id == bindparam("response_id"),
    )


def chain_statement(limits: StoreLimits) -> Select[int, int, bytes, bytes, int | None, int | None]:
    """The chain that ends in `:id`, oldest first, as (turns from here to the end, their bytes, input, response, and
    where in that its output is: first byte, bytes).

    The walk collects keys and sizes only and stops one turn past a limit, so the first row tells whether one was
    exceeded, and no more than that is ever read.
    """
    size = cast(func.length(responses.c.input) + func.length(responses.c.response), BigInteger)
    keys = responses.c.id, responses.c.previous_id
    stored = responses.c.input, responses.c.response, responses.c.output_at, responses.c.output_bytes
    tenant = and_(responses.c.tenant == bindparam("tenant"), kept(limits))
    end = select(*keys, literal(1).label("turns"), size.label("bytes")).where(tenant, responses.c.id == bindparam("id"))
    chain = end.cte("chain", recursive=True)
    chain = chain.union_all(
        select(*keys, chain.c.turns + 1, chain.c.bytes + size)
        .join(chain, responses.c.id == chain.c.previous_id)
        .where(tenant, chain.c.turns <= limits.max_chain_turns, chain.c.bytes <= limits.max_chain_bytes)
    )
    return (
        select(chain.c.turns, chain.c.bytes, *stored)
        .join(responses, responses.c.id == chain.c.id)
        .where(tenant)
        .order_by(chain.c.turns.desc())
    )


def items_statement(limits: StoreLimits) -> Select[str, str, int, bool, bytes, bytes]:
    """Where the items of `:ids` are, as (item id, turn id, bytes of all these turns, first, input, response).

    A turn's JSON stands only in the first row that names it, and in none when all of them have too many bytes.
    """
    size = cast(func.length(responses.c.input) + func.length(responses.c.response), BigInteger)
    number = func.row_number().over(partition_by=responses.c.id, order_by=items.c.id)
    its_turn = and_(responses.c.tenant == items.c.tenant, responses.c.id == items.c.response_id, kept(limits))
    found = (
        select(items.c.id.label("item_id"), responses.c.id.label("turn_id"), size.label("size"), number.label("number"))
        .join(responses, its_turn)
        .where(items.c.tenant == bindparam("tenant"), items.c.id.in_(bindparam("ids", expanding=True)))
        .cte("found")
    )
    total = cast(func.sum(case((found.c.number == 1, found.c.size), else_=0)).over(), BigInteger)
    sized = select(found, total.label("total")).cte("sized")
    first = and_(sized.c.number == 1, sized.c.total <= limits.max_items_bytes)
    return select(
        sized.c.item_id, sized.c.turn_id, sized.c.total, first, responses.c.input, responses.c.response
    ).outerjoin(responses, and_(first, responses.c.tenant == bindparam("tenant"), responses.c.id == sized.c.turn_id))
