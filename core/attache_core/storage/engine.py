"""Opens a store: from the user's URL to engines with bounded pools, and back to nothing.

Knows SQLite's connection settings; unaware of tables. The database must exist (`migrate` makes it): a connection never
creates a file, and one whose file was removed or replaced is dropped, because SQLite would go on writing, without
error, into a file that nobody can reach any more.
Source: https://www.sqlite.org/pragma.html and https://www.sqlite.org/howtocorrupt.html, section 4.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from sqlalchemy import URL, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from attache_core.storage.limits import DEFAULT_LIMITS, StoreLimits
from attache_core.storage.sql_store import SqlStore
from attache_core.storage.url import sqlite_file


@asynccontextmanager
async def open_store(url: str, limits: StoreLimits = DEFAULT_LIMITS) -> AsyncIterator[SqlStore]:
    """A store for this process and event loop; several processes may open the same URL.

    Nothing is connected until the first call; `check` tells whether the database can be used.

    Args:
        url: `sqlite:///FILE`, brought up to date by `migrate`.
        limits: see `StoreLimits`.

    Raises:
        ConfigError: the URL is not supported.
    """
    path = sqlite_file(url)
    async with AsyncExitStack() as stack:
        readers = _open_engine(path, limits, connections=limits.max_readers, isolation_level="AUTOCOMMIT")
        stack.push_async_callback(readers.dispose)
        writers = _open_engine(path, limits, connections=1, isolation_level="SERIALIZABLE")
        stack.push_async_callback(writers.dispose)
        yield SqlStore(readers, writers, limits)


def _open_engine(
    path: Path, limits: StoreLimits, *, connections: int, isolation_level: Literal["AUTOCOMMIT", "SERIALIZABLE"]
) -> AsyncEngine:
    engine = create_async_engine(
        URL.create("sqlite+aiosqlite", database=f"file:{quote(str(path))}", query={"mode": "rw", "uri": "true"}),
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
