"""The store over SQLAlchemy: three statements, built once, that SQLite and PostgreSQL understand alike.

Knows the tables and how to ask for them; unaware of how connections are made (`engine`) and of what a response means.
Invariants: the tenant is part of every query's condition, never a filter after it; what fails below SQLAlchemy leaves
here as a StoreError that says nothing of the library, the statement or its values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TypeVarTuple

import structlog
from sqlalchemy import BigInteger, Insert, Row, Select, bindparam, cast, func, literal, select
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from attache_core.errors import StoreError
from attache_core.json_codec import Json, decode
from attache_core.storage.limits import DEFAULT_LIMITS, StoreLimits
from attache_core.storage.row import is_key, to_row, to_turn
from attache_core.storage.store import Store, StoredTurn
from attache_core.storage.tables import responses

_Columns = TypeVarTuple("_Columns")

_log = structlog.get_logger(__name__)


class SqlStore(Store):
    """Turns in a database. `open_store` makes one; engines are its caller's to dispose.

    Args:
        readers: the engine of loads. In autocommit mode a load is one statement and nothing else.
        writers: the engine of saves. SQLite admits one writer at a time, so its pool holds one connection, and saves
            queue here, in order, rather than poll for the database's lock. May be the same engine as `readers`.
        limits: the bounds of what one call may load.
    """

    def __init__(self, readers: AsyncEngine, writers: AsyncEngine, limits: StoreLimits = DEFAULT_LIMITS) -> None:
        self._readers = readers
        self._writers = writers
        self._limits = limits
        self._insert = insert_statement(writers.dialect.name)
        self._chain = chain_statement(limits)
        self._response = response_statement()
        self._any = select(responses.c.id).limit(1)

    async def save_turn(self, tenant: str, turn: StoredTurn) -> None:
        """See `Store.save_turn`. Raises ValueError when the response has no usable id."""
        row = to_row(tenant, turn).values()
        with _store_errors("save_turn"):
            async with self._writers.begin() as connection:
                await connection.execute(self._insert, row)

    async def load_chain(self, tenant: str, response_id: str) -> list[StoredTurn]:
        """See `Store.load_chain`."""
        rows = await self._load("load_chain", self._chain, tenant, response_id)
        if rows:
            turns, size_bytes, _, _ = rows[0]
            self._limits.check_chain(turns, size_bytes)
        return [to_turn(stored_input, stored_response) for _, _, stored_input, stored_response in rows]

    async def load_response(self, tenant: str, response_id: str) -> Json | None:
        """See `Store.load_response`."""
        rows = await self._load("load_response", self._response, tenant, response_id)
        return decode(rows[0][0]) if rows else None

    async def check(self) -> None:
        """See `Store.check`: reads the table, so that a missing file and a missing schema both show."""
        with _store_errors("check"):
            async with self._readers.connect() as connection:
                await connection.execute(self._any)

    async def _load(
        self, operation: str, statement: Select[*_Columns], tenant: str, response_id: str
    ) -> Sequence[Row[*_Columns]]:
        if not (is_key(tenant) and is_key(response_id)):
            return []
        with _store_errors(operation):
            async with self._readers.connect() as connection:
                result = await connection.execute(statement, {"tenant": tenant, "id": response_id})
                return result.all()


def insert_statement(dialect: str) -> Insert:
    """Insert one row, unless its key is there. `dialect` is SQLAlchemy's name of it."""
    own = import_module(f"sqlalchemy.dialects.{dialect}")  # each dialect has its own insert; loading all takes long
    statement: Insert = own.insert(responses).on_conflict_do_nothing(index_elements=responses.primary_key.columns)
    return statement


def response_statement() -> Select[bytes]:
    """The response of `:tenant` and `:id`."""
    return select(responses.c.response).where(
        responses.c.tenant == bindparam("tenant"), responses.c.id == bindparam("id")
    )


def chain_statement(limits: StoreLimits) -> Select[int, int, bytes, bytes]:
    """The chain that ends in `:id`, oldest first, as (turns from here to the end, their bytes, input, response).

    The walk collects keys and sizes only and stops one turn past a limit, so the first row tells whether one was
    exceeded, and no more than that is ever read.
    """
    size = cast(func.length(responses.c.input) + func.length(responses.c.response), BigInteger)
    keys = responses.c.id, responses.c.previous_id
    tenant = responses.c.tenant == bindparam("tenant")
    end = select(*keys, literal(1).label("turns"), size.label("bytes")).where(tenant, responses.c.id == bindparam("id"))
    chain = end.cte("chain", recursive=True)
    chain = chain.union_all(
        select(*keys, chain.c.turns + 1, chain.c.bytes + size)
        .join(chain, responses.c.id == chain.c.previous_id)
        .where(tenant, chain.c.turns <= limits.max_chain_turns, chain.c.bytes <= limits.max_chain_bytes)
    )
    return (
        select(chain.c.turns, chain.c.bytes, responses.c.input, responses.c.response)
        .join(responses, responses.c.id == chain.c.id)
        .where(tenant)
        .order_by(chain.c.turns.desc())
    )


@contextmanager
def _store_errors(operation: str) -> Iterator[None]:
    try:
        yield
    except (SQLAlchemyError, OSError) as error:
        _log.warning("store_unavailable", operation=operation, cause=_cause(error))
        raise StoreError("The store is out of reach; the same request may succeed later.") from error


def _cause(error: Exception) -> str:
    """The driver's own words where there are any: SQLAlchemy's repeat the statement."""
    original = error.orig if isinstance(error, DBAPIError) else error
    return f"{type(original).__name__}: {original}"
