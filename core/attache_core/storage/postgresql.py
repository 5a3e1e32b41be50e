"""PostgreSQL: how its connections are made, and how one process at a time may change its schema.

Unaware of tables. The driver reads the URL itself, so options and environment variables mean what they mean to libpq's
tools (`sslmode`, `PGPASSWORD`, several hosts). Every wait ends: for a connection, for opening one, for a lock, for a
statement; the server ends the last two, and a server that does not is left. A connection that the server closed while
it was idle is replaced without asking the server first, so a restart fails nothing but what was under way.
Source: https://www.postgresql.org/docs/current/runtime-config-client.html.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, TypeVar, TypeVarTuple

import asyncpg  # type: ignore[import-untyped]  # it has no types
import structlog
from sqlalchemy import Connection, Executable, NullPool, text
from sqlalchemy.dialects.postgresql import asyncpg as words_of_asyncpg
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.sql.selectable import TypedReturnsRows

from attache_core.storage.database import Database, NoConnectionError, Transaction, Work, store_errors
from attache_core.storage.limits import StoreLimits
from attache_core.storage.prepared import NO_PARAMETERS, Parameters, Statements
from attache_core.storage.url import PostgresqlServer

_Columns = TypeVarTuple("_Columns")
_Result = TypeVar("_Result")

_SILENCE_S = 1.0
"""How much longer than the server's own limit an answer may take before the connection is given up."""

_MIGRATION_LOCK = int.from_bytes("attaché".encode())
"""The same number for every gateway of a database, and unlikely to be another program's."""

_log = structlog.get_logger(__name__)

_ERRORS: Final = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)


@asynccontextmanager
async def open_postgresql(server: PostgresqlServer, limits: StoreLimits) -> AsyncIterator[Database]:
    """The database of a server, for this process and event loop."""
    pool = await asyncpg.create_pool(
        min_size=0,
        max_size=limits.max_connections,
        max_inactive_connection_lifetime=0,  # for good
        reset=_keep,
        **_connect_arguments(server, limits, limits.statement_timeout_s),
    )
    try:
        yield PostgresqlDatabase(pool, limits)
    finally:
        with suppress(TimeoutError):
            async with asyncio.timeout(limits.connect_timeout_s):  # past it, they are closed all the same
                await pool.close()


def _connect_arguments(server: PostgresqlServer, limits: StoreLimits, statement_timeout_s: float) -> dict[str, Any]:
    return {
        "dsn": server.dsn,
        "timeout": limits.connect_timeout_s,
        "command_timeout": statement_timeout_s + _SILENCE_S,
        "server_settings": {
            "statement_timeout": _milliseconds(statement_timeout_s),
            "lock_timeout": _milliseconds(limits.lock_timeout_s),
            # No transaction waits for anything but the server: this one's process is gone; its locks must go as well.
            "idle_in_transaction_session_timeout": _milliseconds(statement_timeout_s),
        },
    }


def _milliseconds(seconds: float) -> str:
    """As the server takes it, to which 0 would mean no limit."""
    return str(max(1, round(seconds * 1000)))


async def _keep(_: asyncpg.Connection) -> None:
    """What is done to a connection that goes back: it has no state but its prepared statements, so nothing."""


class PostgresqlDatabase(Database):
    """See `Database`. Each call has a connection of the pool for itself."""

    dialect = "postgresql"

    def __init__(self, pool: asyncpg.Pool, limits: StoreLimits) -> None:
        self._pool = pool
        self._statements = Statements(words_of_asyncpg.dialect())  # type: ignore[no-untyped-call]  # SQLAlchemy leaves it untyped
        self._free = asyncio.Semaphore(limits.max_connections)
        self._waiting = 0
        self._limits = limits

    async def read(
        self, operation: str, statement: TypedReturnsRows[*_Columns], parameters: Parameters = NO_PARAMETERS
    ) -> Sequence[tuple[*_Columns]]:
        """See `Database.read`."""
        with store_errors(operation, *_ERRORS):
            async with self._connection() as connection:
                return await PostgresqlTransaction(connection, self._statements).rows(statement, parameters)

    async def change(
        self,
        operation: str,
        statement: TypedReturnsRows[*_Columns],
        parameters: Parameters = NO_PARAMETERS,
        *,
        durable: bool = True,
    ) -> Sequence[tuple[*_Columns]]:
        """See `Database.change`; the server makes a transaction of a statement that comes alone."""
        del durable
        return await self.read(operation, statement, parameters)

    async def write(self, operation: str, work: Work[_Result], *, durable: bool = True) -> _Result:
        """See `Database.write`; each change is as durable as the server makes it."""
        del durable
        with store_errors(operation, *_ERRORS):
            async with self._connection() as connection:
                try:
                    await connection.execute("BEGIN")
                    result = await work(PostgresqlTransaction(connection, self._statements))
                    await connection.execute("COMMIT")
                except OSError:
                    raise  # who does not answer any more would not answer this either
                except BaseException:
                    await _roll_back(connection)
                    raise
        return result

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[asyncpg.Connection]:
        if self._free.locked():
            await self._wait()
        else:
            await self._free.acquire()
        try:
            async with self._pool.acquire() as connection:
                try:
                    yield connection
                except OSError:  # a TimeoutError, too: the server does not answer any more
                    _give_up(connection)
                    raise
        finally:
            self._free.release()

    async def _wait(self) -> None:
        if self._waiting >= self._limits.max_waiting_calls:
            raise NoConnectionError(f"{self._waiting} calls wait for a connection")
        self._waiting += 1
        try:
            async with asyncio.timeout(self._limits.connection_timeout_s):
                await self._free.acquire()
        except TimeoutError:
            raise NoConnectionError(f"no connection was free for {self._limits.connection_timeout_s:g} s") from None
        finally:
            self._waiting -= 1


async def _roll_back(connection: asyncpg.Connection) -> None:
    """Undo what was done; a connection where that fails is given up, and the server undoes it."""
    is_undone = False
    try:
        await connection.execute("ROLLBACK")
        is_undone = True
    except (*_ERRORS, OSError) as error:
        _log.debug("connection given up", cause=type(error).__name__)
    finally:
        if not is_undone:
            _give_up(connection)


def _give_up(connection: asyncpg.Connection) -> None:
    """Close it at once. One that has closed by itself left the pool by itself, and refuses."""
    with suppress(asyncpg.InterfaceError):
        connection.terminate()


@dataclass(frozen=True, slots=True)
class PostgresqlTransaction(Transaction):
    """See `Transaction`."""

    connection: asyncpg.Connection
    statements: Statements

    async def rows(
        self, statement: TypedReturnsRows[*_Columns], parameters: Parameters = NO_PARAMETERS
    ) -> Sequence[tuple[*_Columns]]:
        """See `Transaction.rows`."""
        sent, values = self.statements.prepared(statement).bound(parameters)
        rows: Sequence[tuple[*_Columns]] = await self.connection.fetch(sent, *values)
        return rows

    async def change(self, statement: Executable, parameters: Parameters = NO_PARAMETERS) -> int:
        """See `Transaction.change`."""
        sent, values = self.statements.prepared(statement).bound(parameters)
        done: str = await self.connection.execute(sent, *values)
        return int(done.rpartition(" ")[2])

    async def change_each(self, statement: Executable, rows: Sequence[Parameters]) -> None:
        """See `Transaction.change_each`."""
        prepared = self.statements.prepared(statement)
        await self.connection.executemany(prepared.text, [prepared.values(row) for row in rows])


def locked(server: PostgresqlServer, limits: StoreLimits, work: Callable[[Connection], None]) -> None:
    """Do `work` in one transaction that holds a lock of the database which only this function takes.

    Raises:
        SQLAlchemyError, OSError: the database cannot be reached or changed, or another process holds the lock for
            too long.
    """

    def locked_work(connection: Connection) -> None:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
        work(connection)

    looked_at(server, limits, locked_work)


def looked_at(server: PostgresqlServer, limits: StoreLimits, work: Callable[[Connection], None]) -> None:
    """Do `work` in one transaction. Raises SQLAlchemyError, OSError: the database cannot be reached."""
    asyncio.run(_in_transaction(server, limits, work))


async def _in_transaction(server: PostgresqlServer, limits: StoreLimits, work: Callable[[Connection], None]) -> None:
    patient = limits.model_copy(update={"lock_timeout_s": limits.migration_timeout_s})
    arguments = _connect_arguments(server, patient, limits.migration_timeout_s)

    async def connect() -> asyncpg.Connection:
        return await asyncpg.connect(**arguments)

    engine = create_async_engine(
        "postgresql+asyncpg://", async_creator=connect, poolclass=NullPool, hide_parameters=True
    )
    try:
        async with engine.begin() as connection:
            await connection.run_sync(work)
    finally:
        await engine.dispose()
