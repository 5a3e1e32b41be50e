"""Where the stores of one process send their statements: connections to read, connections to write, and one error.

Unaware of tables and of how connections are made (`engine`). Invariant: what fails below SQLAlchemy leaves here as a
StoreError that says nothing of the library, the statement or its values.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TypeVarTuple

import structlog
from sqlalchemy import Row, Select
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from attache_core.errors import StoreError

_Columns = TypeVarTuple("_Columns")

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Database:
    """A database that exists and has its tables; engines are their maker's to dispose.

    Attributes:
        readers: the engine of loads, in autocommit mode: a load is one statement and nothing else.
        writers: the engine of saves. SQLite admits one writer at a time, so its pool holds one connection, and saves
            queue here, in order, rather than poll for the database's lock. May be the same engine as `readers`.
    """

    readers: AsyncEngine
    writers: AsyncEngine

    @property
    def dialect(self) -> str:
        """SQLAlchemy's name of it."""
        return self.writers.dialect.name

    async def read(
        self, operation: str, statement: Select[*_Columns], parameters: Mapping[str, object] | None = None
    ) -> Sequence[Row[*_Columns]]:
        """All rows of one query. `operation` is what the log calls it. Raises StoreError."""
        with _store_errors(operation):
            async with self.readers.connect() as connection:
                result = await connection.execute(statement, parameters)
                return result.all()

    @asynccontextmanager
    async def write(self, operation: str) -> AsyncIterator[AsyncConnection]:
        """A transaction, committed at the end of the block, rolled back when it raises. Raises StoreError."""
        with _store_errors(operation):
            async with self.writers.begin() as connection:
                yield connection


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
