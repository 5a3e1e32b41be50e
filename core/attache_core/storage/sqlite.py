"""SQLite: how its connections are made, and how one process at a time may change its schema.

Unaware of tables. The file must exist (`locked` makes it): a connection never creates one. The driver is Python's own,
in threads (`sqlite_thread`); one of them writes, because SQLite admits one writer at a time, and others read.
Source: https://www.sqlite.org/pragma.html.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, TypeVar, TypeVarTuple
from urllib.parse import quote

from sqlalchemy import URL, Connection, Executable, NullPool, create_engine
from sqlalchemy.dialects import sqlite
from sqlalchemy.sql.selectable import TypedReturnsRows

from attache_core.errors import ConfigError
from attache_core.storage.database import Database, Transaction, Work, store_errors
from attache_core.storage.limits import StoreLimits
from attache_core.storage.prepared import NO_PARAMETERS, Parameters, Statements
from attache_core.storage.sqlite_group import make_changes
from attache_core.storage.sqlite_thread import Call, Errand, SqliteThread, SqliteThreads, Terms
from attache_core.storage.url import SqliteFile

_Columns = TypeVarTuple("_Columns")
_Result = TypeVar("_Result")

SETTINGS: Final = (
    "synchronous=FULL",  # a commit is on the disk before the client is told
    "journal_mode=WAL",  # the file keeps it, but not every copy of one does; no commit is half on the disk with it
    "foreign_keys=ON",
)
"""Of every connection."""


@asynccontextmanager
async def open_sqlite(file: SqliteFile, limits: StoreLimits) -> AsyncIterator[Database]:
    """The database of a file, for this process and event loop."""
    async with AsyncExitStack() as stack:
        readers = _threads(file.path, limits, threads=limits.max_readers, together=1, errand=_read_each)
        stack.push_async_callback(readers.close)
        writer = _threads(file.path, limits, threads=1, together=limits.max_group_writes, errand=make_changes)
        stack.push_async_callback(writer.close)
        yield SqliteDatabase(readers, writer)


def _threads(path: Path, limits: StoreLimits, *, threads: int, together: int, errand: Errand) -> SqliteThreads:
    terms = Terms(threads, together, limits.max_waiting_calls, limits.connection_timeout_s)
    connect = partial(_connect, path, limits.lock_timeout_s)
    return SqliteThreads(terms, lambda: SqliteThread(path, connect, errand))


def _connect(path: Path, lock_timeout_s: float) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{_existing(path)}?mode=rw",
        uri=True,
        timeout=lock_timeout_s,
        isolation_level=None,  # a transaction begins where it is said to
        check_same_thread=False,  # its thread is where it is used; this lets garbage collection close it anywhere
    )
    for setting in SETTINGS:
        connection.execute(f"PRAGMA {setting}")
    return connection


def _read_each(connection: sqlite3.Connection, calls: Sequence[Call]) -> list[object]:
    return [None if call.is_given_up else call.do(connection) for call in calls]


@dataclass(frozen=True, slots=True)
class SqliteDatabase(Database):
    """See `Database`. A read and a write are one errand to a thread each; writes that wait are made together."""

    readers: SqliteThreads
    writer: SqliteThreads
    dialect: str = "sqlite"
    statements: Statements = field(default_factory=lambda: Statements(sqlite.dialect(paramstyle="qmark")))

    async def read(
        self, operation: str, statement: TypedReturnsRows[*_Columns], parameters: Parameters = NO_PARAMETERS
    ) -> Sequence[tuple[*_Columns]]:
        """See `Database.read`."""
        text, values = self.statements.prepared(statement).bound(parameters)
        with store_errors(operation, sqlite3.Error):
            rows: list[tuple[*_Columns]] = await self.readers.call(
                lambda connection: connection.execute(text, values).fetchall()
            )
        return rows

    async def change(
        self,
        operation: str,
        statement: TypedReturnsRows[*_Columns],
        parameters: Parameters = NO_PARAMETERS,
        *,
        durable: bool = True,
    ) -> Sequence[tuple[*_Columns]]:
        """See `Database.change`."""
        return await self.write(operation, lambda transaction: transaction.rows(statement, parameters), durable=durable)

    async def write(self, operation: str, work: Work[_Result], *, durable: bool = True) -> _Result:
        """See `Database.write`."""

        def do(connection: sqlite3.Connection) -> _Result:
            return _run_to_end(work(SqliteTransaction(connection, self.statements)))

        with store_errors(operation, sqlite3.Error):
            result: _Result = await self.writer.call(do, durable=durable)
        return result


@dataclass(frozen=True, slots=True)
class SqliteTransaction(Transaction):
    """See `Transaction`. None of its methods waits for anything but SQLite, in whose thread they run."""

    connection: sqlite3.Connection
    statements: Statements

    async def rows(
        self, statement: TypedReturnsRows[*_Columns], parameters: Parameters = NO_PARAMETERS
    ) -> Sequence[tuple[*_Columns]]:
        """See `Transaction.rows`."""
        return self.connection.execute(*self.statements.prepared(statement).bound(parameters)).fetchall()

    async def change(self, statement: Executable, parameters: Parameters = NO_PARAMETERS) -> int:
        """See `Transaction.change`."""
        return self.connection.execute(*self.statements.prepared(statement).bound(parameters)).rowcount

    async def change_each(self, statement: Executable, rows: Sequence[Parameters]) -> None:
        """See `Transaction.change_each`."""
        prepared = self.statements.prepared(statement)
        self.connection.executemany(prepared.text, [prepared.values(row) for row in rows])


def _run_to_end(work: Awaitable[_Result]) -> _Result:
    """The result of a coroutine that never waits."""
    steps = work.__await__()
    try:
        next(steps)
    except StopIteration as end:
        result: _Result = end.value
        return result
    raise RuntimeError("a transaction waited for something else")


def _existing(path: Path) -> str:
    return f"file:{quote(str(path))}"


def locked(file: SqliteFile, limits: StoreLimits, work: Callable[[Connection], None]) -> None:
    """Do `work` in one transaction that holds the database's write lock. A new file is its owner's alone.

    Raises:
        ConfigError: the file cannot be written.
        SQLAlchemyError: it is no database, or another process holds the lock for too long.
    """
    _create_file(file.path)
    with _connected(URL.create("sqlite", database=str(file.path)), limits) as connection:
        connection.exec_driver_sql("PRAGMA journal_mode=WAL")  # a property of the file: readers never wait
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        work(connection)
        connection.commit()


def looked_at(file: SqliteFile, limits: StoreLimits, work: Callable[[Connection], None]) -> None:
    """Do `work`, which only reads. Raises SQLAlchemyError: there is no such file, or it is no database."""
    options = {"mode": "rw", "uri": "true"}
    with _connected(URL.create("sqlite", database=_existing(file.path), query=options), limits) as connection:
        work(connection)


@contextmanager
def _connected(url: URL, limits: StoreLimits) -> Iterator[Connection]:
    engine = create_engine(
        url,
        connect_args={"timeout": limits.migration_timeout_s},
        isolation_level="AUTOCOMMIT",  # so that BEGIN and COMMIT are where `locked` says they are
        poolclass=NullPool,
    )
    with engine.connect() as connection:
        yield connection


def _create_file(path: Path) -> None:
    if not path.parent.is_dir():
        raise ConfigError(f"storage: there is no directory {path.parent}; create it, or name another place")
    try:
        path.touch(mode=0o600)
    except OSError as error:
        raise ConfigError(f"storage: {path} cannot be written: {error.strerror}") from error
