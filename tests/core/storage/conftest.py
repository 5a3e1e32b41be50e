"""A migrated database on disk, and a view of the statements that reach it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Engine, event

from attache_core.storage.migrate import migrate


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


@pytest.fixture
def statements() -> Iterator[list[str]]:
    """Every statement that any engine sends while the test runs, as it is sent."""
    sent: list[str] = []
    with _listening(sent):
        yield sent


@contextmanager
def _listening(sent: list[str]) -> Iterator[None]:
    def on_statement(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        sent.append(statement)

    event.listen(Engine, "before_cursor_execute", on_statement)
    try:
        yield
    finally:
        event.remove(Engine, "before_cursor_execute", on_statement)
