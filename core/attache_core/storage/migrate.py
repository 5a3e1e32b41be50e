"""Brings a database to the schema of this version of the code, once, before any worker opens it.

Synchronous, for the parent process at start-up. The database's own write lock is held from looking at its revision to
the commit, so processes that start together migrate one after the other, and the later ones find nothing to do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import URL, Connection, NullPool, create_engine
from sqlalchemy.exc import DBAPIError

from attache_core.errors import ConfigError
from attache_core.storage.limits import DEFAULT_LIMITS
from attache_core.storage.url import sqlite_file


def migrate(url: str, lock_timeout_s: float = DEFAULT_LIMITS.lock_timeout_s) -> None:
    """Create the database of `url`, or bring it up to date; harmless when it is, and when others do the same.

    A new file is readable by its owner alone.

    Args:
        url: `sqlite:///FILE`; the directory must exist.
        lock_timeout_s: how long to wait for a process that is writing.

    Raises:
        ConfigError: the URL is not supported, the file cannot be used, or a newer version of the code has written it.
    """
    path = sqlite_file(url)
    _create_file(path)
    with _write_lock(path, lock_timeout_s) as connection:
        config = Config()
        config.set_main_option("script_location", "attache_core.storage:migrations")
        config.attributes["connection"] = connection
        _refuse_unknown_revision(path, connection, ScriptDirectory.from_config(config))
        command.upgrade(config, "head")


def _create_file(path: Path) -> None:
    if not path.parent.is_dir():
        raise ConfigError(f"storage: there is no directory {path.parent}; create it, or name another place")
    try:
        path.touch(mode=0o600)
    except OSError as error:
        raise ConfigError(f"storage: {path} cannot be written: {error.strerror}") from error


@contextmanager
def _write_lock(path: Path, lock_timeout_s: float) -> Iterator[Connection]:
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        connect_args={"timeout": lock_timeout_s},
        isolation_level="AUTOCOMMIT",  # so that BEGIN and COMMIT are where this function says they are
        poolclass=NullPool,
    )
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode=WAL")  # a property of the file: readers never wait
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            yield connection
            connection.commit()
    except DBAPIError as error:
        raise ConfigError(f"storage: {path} cannot be used as the database: {error.orig}") from error


def _refuse_unknown_revision(path: Path, connection: Connection, scripts: ScriptDirectory) -> None:
    revision = MigrationContext.configure(connection).get_current_revision()
    known = {script.revision for script in scripts.walk_revisions()}
    if revision is not None and revision not in known:
        raise ConfigError(
            f"storage: {path} was written by a newer version (its schema is {revision}); "
            "install that version, or name another file"
        )
