"""SQLite: how its connections are made, and how one process at a time may change its schema.

Unaware of tables. The file must exist (`locked` makes it): a connection never creates one, and a connection whose file
was removed or replaced is dropped, because SQLite would go on writing, without error, into a file that nobody can
reach any more.
Source: https://www.sqlite.org/pragma.html and https://www.sqlite.org/howtocorrupt.html, section 4.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from sqlalchemy import URL, Connection, NullPool, create_engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from attache_core.errors import ConfigError
from attache_core.storage.database import Database
from attache_core.storage.limits import StoreLimits
from attache_core.storage.url import SqliteFile


@asynccontextmanager
async def open_sqlite(file: SqliteFile, limits: StoreLimits) -> AsyncIterator[Database]:
    """The database of a file, for this process and event loop."""
    async with AsyncExitStack() as stack:
        readers = _open_engine(file.path, limits, connections=limits.max_readers, isolation_level="AUTOCOMMIT")
        stack.push_async_callback(readers.dispose)
        writers = _open_engine(file.path, limits, connections=1, isolation_level="SERIALIZABLE")
        stack.push_async_callback(writers.dispose)
        yield Database(readers, writers)


def _open_engine(
    path: Path, limits: StoreLimits, *, connections: int, isolation_level: Literal["AUTOCOMMIT", "SERIALIZABLE"]
) -> AsyncEngine:
    engine = create_async_engine(
        URL.create("sqlite+aiosqlite", database=_existing(path), query={"mode": "rw", "uri": "true"}),
        connect_args={"timeout": limits.lock_timeout_s},
        isolation_level=isolation_level,
        pool_size=connections,
        max_overflow=0,
        pool_timeout=limits.connection_timeout_s,
        pool_reset_on_return=None,  # no statement leaves a transaction open, and a rollback is a thread switch
        skip_autocommit_rollback=True,
        hide_parameters=True,
    )
    event.listen(engine.sync_engine, "connect", _configure)
    _watch_file(engine, path)
    return engine


def _existing(path: Path) -> str:
    return f"file:{quote(str(path))}"


def _configure(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA synchronous=FULL")  # a commit is on the disk before the client is told
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def _watch_file(engine: AsyncEngine, path: Path) -> None:
    def connected(_: DBAPIConnection, entry: ConnectionPoolEntry) -> None:
        entry.info["file"] = _identity(path)

    def checked_out(_: DBAPIConnection, entry: ConnectionPoolEntry, __: object) -> None:
        if entry.info["file"] != _identity(path):
            raise DisconnectionError("the database file was removed or replaced")

    event.listen(engine.sync_engine, "connect", connected)
    event.listen(engine.sync_engine, "checkout", checked_out)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


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
