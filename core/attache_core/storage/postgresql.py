"""PostgreSQL: how its connections are made, and how one process at a time may change its schema.

Unaware of tables. The driver reads the URL itself, so options and environment variables mean what they mean to libpq's
tools (`sslmode`, `PGPASSWORD`, several hosts). Every wait ends: for a connection of the pool, for a new one, for a
lock, for a statement; the server ends the last two, and a server that does not is left. A connection that the server
closed while it was idle is replaced without asking the server first, so a restart fails nothing but what was under way.
Source: https://www.postgresql.org/docs/current/runtime-config-client.html.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import asyncpg  # type: ignore[import-untyped]  # it has no types
from sqlalchemy import Connection, ExceptionContext, event, text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from attache_core.storage.database import Database
from attache_core.storage.limits import StoreLimits
from attache_core.storage.url import PostgresqlServer

_SILENCE_S = 1.0
"""How much longer than the server's own limit an answer may take before the connection is given up."""

_MIGRATION_LOCK = int.from_bytes("attaché".encode())
"""The same number for every gateway of a database, and unlikely to be another program's."""


@asynccontextmanager
async def open_postgresql(server: PostgresqlServer, limits: StoreLimits) -> AsyncIterator[Database]:
    """The database of a server, for this process and event loop."""
    engine = _open_engine(server, limits, statement_timeout_s=limits.statement_timeout_s)
    try:
        yield Database(engine.execution_options(isolation_level="AUTOCOMMIT"), engine)
    finally:
        await engine.dispose()


def _open_engine(server: PostgresqlServer, limits: StoreLimits, *, statement_timeout_s: float) -> AsyncEngine:
    server_settings = {
        "statement_timeout": _milliseconds(statement_timeout_s),
        "lock_timeout": _milliseconds(limits.lock_timeout_s),
        # No transaction waits for anything but the server: this one's process is gone, and its locks must go as well.
        "idle_in_transaction_session_timeout": _milliseconds(statement_timeout_s),
    }

    async def connect() -> asyncpg.Connection:
        return await asyncpg.connect(
            server.dsn,
            timeout=limits.connect_timeout_s,
            command_timeout=statement_timeout_s + _SILENCE_S,
            server_settings=server_settings,
        )

    engine = create_async_engine(
        "postgresql+asyncpg://",
        async_creator=connect,
        pool_size=limits.max_connections,
        max_overflow=0,
        pool_timeout=limits.connection_timeout_s,
        hide_parameters=True,
    )
    event.listen(engine.sync_engine, "checkout", _checked_out)
    event.listen(engine.sync_engine, "handle_error", _failed)
    return engine


def _milliseconds(seconds: float) -> str:
    """As the server takes it, to which 0 would mean no limit."""
    return str(max(1, round(seconds * 1000)))


def _checked_out(_: DBAPIConnection, entry: ConnectionPoolEntry, __: object) -> None:
    connection = entry.driver_connection
    if connection is None or connection.is_closed():
        raise DisconnectionError("the server closed the connection")


def _failed(context: ExceptionContext) -> None:
    if isinstance(context.original_exception, OSError):  # a TimeoutError, too: the server does not answer any more
        context.is_disconnect = True


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
    engine = _open_engine(server, patient, statement_timeout_s=limits.migration_timeout_s)
    try:
        async with engine.begin() as connection:
            await connection.run_sync(work)
    finally:
        await engine.dispose()
