"""The URLs that users write."""

from __future__ import annotations

from pathlib import Path

import pytest

from attache_core.errors import ConfigError
from attache_core.storage.engine import open_store
from attache_core.storage.url import sqlite_file

_SUPPORTED = "use sqlite:///FILE, or sqlite:////FILE with an absolute path"


@pytest.mark.parametrize(
    ("url", "file"),
    [
        ("sqlite:////var/lib/attache.db", Path("/var/lib/attache.db")),
        ("sqlite:///attache.db", Path.cwd() / "attache.db"),
        ("sqlite:///data/a b#é.db", Path.cwd() / "data/a b#é.db"),
        ("sqlite:////a/50%25.db", Path("/a/50%.db")),
    ],
)
def test_sqlite_file_with_supported_url_answers_absolute_path(url: str, file: Path) -> None:
    assert sqlite_file(url) == file


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("", "this is not a URL"),
        ("attache.db", "this is not a URL"),
        ("sqlite://", "a database in memory cannot be shared by several workers"),
        ("sqlite:///", "a database in memory cannot be shared by several workers"),
        ("sqlite:///:memory:", "a database in memory cannot be shared by several workers"),
        ("sqlite://attache.db", "two slashes begin a host name, and a SQLite file has none"),
        ("sqlite:///a.db?mode=memory&x=1", "mode, x: a SQLite URL takes no options here"),
        ("sqlite+aiosqlite:///a.db", "sqlite+aiosqlite is not supported"),
        ("mysql://user:secret@host/db", "mysql is not supported"),
    ],
)
async def test_url_that_is_not_supported_answers_config_error(url: str, reason: str) -> None:
    with pytest.raises(ConfigError) as refused:
        sqlite_file(url)
    assert refused.value.message == f"storage: {reason}; {_SUPPORTED}"
    with pytest.raises(ConfigError):
        async with open_store(url):
            pass
