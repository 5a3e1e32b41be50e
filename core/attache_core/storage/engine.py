"""Opens a store: from the user's URL to statements that reach a database, and back to nothing.

Imports only the driver that the URL asks for.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from attache_core.storage.database import Database
from attache_core.storage.limits import DEFAULT_LIMITS, StoreLimits
from attache_core.storage.sql_store import SqlStore
from attache_core.storage.url import SqliteFile, place_of


@asynccontextmanager
async def open_store(url: str, limits: StoreLimits = DEFAULT_LIMITS) -> AsyncIterator[SqlStore]:
    """A store for this process and event loop; several processes may open the same URL.

    Nothing is connected until the first call; `check` tells whether the database can be used.

    Args:
        url: `sqlite:///FILE` or `postgresql://USER:PASSWORD@HOST/DATABASE`, brought up to date by `migrate`.
        limits: see `StoreLimits`.

    Raises:
        ConfigError: the URL is not supported.
    """
    async with _open_database(url, limits) as database:
        yield SqlStore(database, limits)


def _open_database(url: str, limits: StoreLimits) -> AbstractAsyncContextManager[Database]:
    place = place_of(url)
    if isinstance(place, SqliteFile):
        from attache_core.storage.sqlite import open_sqlite  # noqa: PLC0415

        return open_sqlite(place, limits)
    from attache_core.storage.postgresql import open_postgresql  # noqa: PLC0415

    return open_postgresql(place, limits)
