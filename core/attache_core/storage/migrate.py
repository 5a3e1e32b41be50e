"""Brings a database to the schema of this version of the code, once, before any worker opens it.

Synchronous, for the parent process at start-up, outside of any event loop. A lock of the database is held from looking
at its revision to the commit, so processes that start together migrate one after the other, and the later ones find
nothing to do. All of a change is one transaction: it is made whole or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from attache_core.errors import ConfigError
from attache_core.storage.database import driver_error, words
from attache_core.storage.limits import DEFAULT_LIMITS, StoreLimits
from attache_core.storage.settings import StorageSettings
from attache_core.storage.url import Place, SqliteFile, place_of


def prepare(settings: StorageSettings) -> None:
    """What a start does before the store is opened: `migrate` or `verify`, as the settings say."""
    (migrate if settings.migrate == "apply" else verify)(settings.url.reveal(), settings)


def migrate(url: str, limits: StoreLimits = DEFAULT_LIMITS) -> None:
    """Create the tables of `url`, or bring them up to date; harmless when they are, and when others do the same.

    A new SQLite file is readable by its owner alone; its directory, or a PostgreSQL database, must exist.

    Raises:
        ConfigError: the URL is not supported, the database cannot be used, or a newer version of the code wrote it.
    """
    place, scripts = place_of(url), ScriptDirectory.from_config(_config())

    def work(connection: Connection) -> None:
        _known_revision(place, connection, scripts)
        config = _config()
        config.attributes["connection"] = connection
        command.upgrade(config, "head")

    with _config_errors(place):
        _backend(place).locked(place, limits, work)


def verify(url: str, limits: StoreLimits = DEFAULT_LIMITS) -> None:
    """Change nothing.

    Raises:
        ConfigError: as `migrate`; or the tables are missing or not up to date.
    """
    place, scripts = place_of(url), ScriptDirectory.from_config(_config())

    def work(connection: Connection) -> None:
        revision, head = _known_revision(place, connection, scripts), scripts.get_current_head()
        if revision != head:
            has = "has no tables yet" if revision is None else f"has the schema {revision}, and {head} is needed"
            raise ConfigError(f"storage: {place.name} {has}; run `attache migrate`, or set `migrate: apply`")

    with _config_errors(place):
        _backend(place).looked_at(place, limits, work)


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", "attache_core.storage:migrations")
    return config


def _backend(place: Place) -> ModuleType:
    if isinstance(place, SqliteFile):
        from attache_core.storage import sqlite  # noqa: PLC0415 - only the driver that the URL asks for

        return sqlite
    from attache_core.storage import postgresql  # noqa: PLC0415

    return postgresql


@contextmanager
def _config_errors(place: Place) -> Iterator[None]:
    try:
        yield
    except (SQLAlchemyError, OSError) as error:
        raise ConfigError(
            f"storage: {place.name} cannot be used as the database: {words(driver_error(error))}"
        ) from None


def _known_revision(place: Place, connection: Connection, scripts: ScriptDirectory) -> str | None:
    revision = MigrationContext.configure(connection).get_current_revision()
    known = {script.revision for script in scripts.walk_revisions()}
    if revision is not None and revision not in known:
        raise ConfigError(
            f"storage: {place.name} was written by a newer version (its schema is {revision}); "
            "install that version, or name another place"
        )
    return revision
