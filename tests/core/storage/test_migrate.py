"""Bringing a database up to date."""

from __future__ import annotations

import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import NullPool, create_engine

from attache_core.errors import ConfigError
from attache_core.json_codec import encode
from attache_core.storage.conversation_tables import conversations
from attache_core.storage.limits import StoreLimits
from attache_core.storage.migrate import migrate


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "a %20 #?é.db"


@pytest.fixture
def url(file: Path) -> str:
    return "sqlite:///" + str(file).replace("%", "%25").replace("?", "%3F")


def _sql(file: Path, statement: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        return connection.execute(statement).fetchall()


def test_migrate_makes_the_schema_that_the_code_expects(file: Path, url: str) -> None:
    migrate(url)
    engine = create_engine("sqlite://", creator=lambda: sqlite3.connect(file), poolclass=NullPool)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        assert compare_metadata(context, conversations.metadata) == []


def test_migrate_makes_a_private_file_in_wal_mode(file: Path, url: str) -> None:
    migrate(url)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert _sql(file, "PRAGMA journal_mode") == [("wal",)]


def test_migrate_again_changes_nothing(file: Path, url: str) -> None:
    migrate(url)
    _sql(file, "INSERT INTO responses VALUES ('t', 'resp_1', NULL, 1, 'completed', '[]', '{}', NULL, NULL)")
    before = _sql(file, "SELECT name, sql FROM sqlite_master")
    migrate(url)
    assert _sql(file, "SELECT name, sql FROM sqlite_master") == before
    assert _sql(file, "SELECT id FROM responses") == [("resp_1",)]
    assert _sql(file, "SELECT version_num FROM alembic_version") == [("0006",)]


def test_migrate_of_a_first_database_leads_from_the_items_that_it_holds_to_their_turns(file: Path, url: str) -> None:
    migrate(url)
    _sql(file, "DROP INDEX responses_by_age")
    for column in ("output_at", "output_bytes"):
        _sql(file, f"ALTER TABLE responses DROP COLUMN {column}")
    for table in ("items", "approvals", "conversations", "conversation_items", "conversation_turns"):
        _sql(file, f"DROP TABLE {table}")
    _sql(file, "UPDATE alembic_version SET version_num = '0001'")
    turns = [
        ("resp_1", 1, "completed", [{"id": "msg_1"}, {"id": "msg_2"}, {"id": None}, {"id": "\0"}], [{"id": "fc_1"}]),
        ("resp_0", 2, "incomplete", [{"id": "msg_2"}, {"id": "\ud83d"}, {}], []),
        ("resp_2", 3, "failed", [{"id": "msg_1"}, {"id": "msg_3"}], None),
        ("resp_3", 4, None, [], None),
    ]
    with closing(sqlite3.connect(file)) as connection, connection:
        for response_id, created_at, status, given, output in turns:
            row = ("t", response_id, created_at, status, encode(given), encode({"output": output}))
            connection.execute("INSERT INTO responses VALUES (?, ?, NULL, ?, ?, ?, ?)", row)
    migrate(url)
    assert _sql(file, "SELECT * FROM items ORDER BY id") == [
        ("t", "fc_1", "resp_1"),
        ("t", "msg_1", "resp_1"),
        ("t", "msg_2", "resp_0"),
    ]


def test_migrate_with_newer_schema_answers_config_error(file: Path, url: str) -> None:
    migrate(url)
    _sql(file, "UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(ConfigError) as refused:
        migrate(url)
    assert refused.value.message == (
        f"storage: {file} was written by a newer version (its schema is 9999); "
        "install that version, or name another place"
    )
    assert _sql(file, "SELECT version_num FROM alembic_version") == [("9999",)]


def test_migrate_with_missing_directory_answers_config_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        migrate(f"sqlite:///{tmp_path}/missing/attache.db")
    assert refused.value.message == (
        f"storage: there is no directory {tmp_path}/missing; create it, or name another place"
    )


def test_migrate_with_directory_for_a_file_answers_config_error(file: Path, url: str) -> None:
    file.mkdir()
    with pytest.raises(ConfigError, match="cannot be used as the database"):
        migrate(url)


def test_migrate_with_name_too_long_answers_config_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be written: File name too long"):
        migrate(f"sqlite:///{tmp_path}/{'x' * 300}")


def test_migrate_with_file_of_another_kind_answers_config_error_and_keeps_it(file: Path, url: str) -> None:
    file.write_bytes(b"a photograph" * 1000)
    with pytest.raises(ConfigError, match="cannot be used as the database: file is not a database"):
        migrate(url)
    assert file.read_bytes() == b"a photograph" * 1000


def test_migrate_with_foreign_database_answers_config_error_and_keeps_it(file: Path, url: str) -> None:
    _sql(file, "CREATE TABLE responses (theirs)")
    with pytest.raises(ConfigError, match="table responses already exists"):
        migrate(url)
    assert _sql(file, "SELECT sql FROM sqlite_master") == [("CREATE TABLE responses (theirs)",)]


def test_migrate_while_another_process_writes_answers_config_error(file: Path, url: str) -> None:
    migrate(url)
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(ConfigError, match="database is locked"):
            migrate(url, StoreLimits(migration_timeout_s=0))
        other.execute("ROLLBACK")
    migrate(url)
