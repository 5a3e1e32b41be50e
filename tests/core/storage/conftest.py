"""Migrated databases, on disk and on a server, and a view of the statements that reach them."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Executable

from attache_core.storage.migrate import migrate
from attache_core.storage.prepared import Prepared, Statements
from postgresql_server import PostgresqlServer


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The database file, its schema up to date."""
    file = tmp_path / "attache.db"
    migrate(f"sqlite:///{file}")
    return file


@pytest.fixture
def url(file: Path) -> str:
    """The URL of `file`."""
    return f"sqlite:///{file}"


@pytest.fixture(scope="session")
def migrated_server_url(postgresql: PostgresqlServer) -> str:
    """A database of the server, its schema up to date."""
    url = postgresql.new_database()
    migrate(url)
    return url


@pytest.fixture
def server_url(postgresql: PostgresqlServer, migrated_server_url: str) -> str:
    """The URL of a database of the server, its schema up to date, without rows."""
    return postgresql.empty(migrated_server_url)


@pytest.fixture(params=["sqlite", "postgresql"])
def each_url(request: pytest.FixtureRequest) -> str:
    """`url` and `server_url`, one after the other."""
    return str(request.getfixturevalue({"sqlite": "url", "postgresql": "server_url"}[request.param]))


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[Prepared]:
    """Every statement that any store sends while the test runs, in order."""
    sent: list[Prepared] = []
    prepared = Statements.prepared

    def remember(statements: Statements, statement: Executable) -> Prepared:
        sent.append(prepared(statements, statement))
        return sent[-1]

    monkeypatch.setattr(Statements, "prepared", remember)
    return sent
