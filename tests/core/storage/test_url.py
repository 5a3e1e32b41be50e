"""The URLs that users write."""

from __future__ import annotations

from pathlib import Path

import pytest

from attache_core.errors import ConfigError
from attache_core.storage.engine import open_store
from attache_core.storage.url import Place, PostgresqlServer, SqliteFile, place_of, shown

_SQLITE = "use sqlite:///FILE, or sqlite:////FILE with an absolute path"
_POSTGRESQL = "use postgresql://USER:PASSWORD@HOST/DATABASE, with special characters percent-encoded"
_SUPPORTED = f"{_SQLITE}, or postgresql://USER:PASSWORD@HOST/DATABASE"


def _server(dsn: str, name: str) -> PostgresqlServer:
    return PostgresqlServer(dsn, f"the database {name}")


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("sqlite:////var/lib/attache.db", SqliteFile(Path("/var/lib/attache.db"))),
        ("sqlite:///attache.db", SqliteFile(Path.cwd() / "attache.db")),
        ("sqlite:///data/a b#é.db", SqliteFile(Path.cwd() / "data/a b#é.db")),
        ("sqlite:////a/50%25.db", SqliteFile(Path("/a/50%.db"))),
        ("postgresql://h/d", _server("postgresql://h/d", "d at h")),
        ("postgres://u@h:5433/d", _server("postgresql://u@h:5433/d", "d at h:5433")),
        ("postgresql://u:p%40:x@[::1]/d%20e", _server("postgresql://u:p%40:x@[::1]/d%20e", "d e at [::1]")),
        ("postgresql://a,b:1/d?sslmode=require", _server("postgresql://a,b:1/d?sslmode=require", "d at a,b:1")),
        ("postgresql:///d?host=/run/pg", _server("postgresql:///d?host=/run/pg", "d at /run/pg")),
        ("postgresql:///d", _server("postgresql:///d", "d at the default host")),
    ],
)
def test_supported_url_leads_to_a_place(url: str, place: Place) -> None:
    assert place_of(url) == place
    assert place_of(url).name == place.name


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("", f"this is not a URL; {_SUPPORTED}"),
        ("attache.db", f"this is not a URL; {_SUPPORTED}"),
        ("se cret://x", f"this is not a URL; {_SUPPORTED}"),
        ("sqlite://", f"a database in memory cannot be shared by several workers; {_SQLITE}"),
        ("sqlite:///", f"a database in memory cannot be shared by several workers; {_SQLITE}"),
        ("sqlite:///:memory:", f"a database in memory cannot be shared by several workers; {_SQLITE}"),
        ("sqlite://attache.db", f"two slashes begin a host name, and a SQLite file has none; {_SQLITE}"),
        ("sqlite:///a.db?mode=memory&x=1", f"mode, x: a SQLite URL takes no options here; {_SQLITE}"),
        ("sqlite+aiosqlite:///a.db", f"sqlite+aiosqlite is not supported; {_SUPPORTED}"),
        ("postgresql+asyncpg://u:secret@h/d", f"postgresql+asyncpg is not supported; {_SUPPORTED}"),
        ("mysql://user:secret@host/db", f"mysql is not supported; {_SUPPORTED}"),
        ("postgresql://u:secret@h", f"the URL names no database; {_POSTGRESQL}"),
        ("postgresql://u:secret@h/", f"the URL names no database; {_POSTGRESQL}"),
        ("postgresql://u:sec@ret@h/d", f"this is not the URL of a PostgreSQL database; {_POSTGRESQL}"),
        ("postgresql://u:sec/ret@h/d", f"this is not the URL of a PostgreSQL database; {_POSTGRESQL}"),
        ("postgresql://u:sec?ret@h/d", f"the URL names no database; {_POSTGRESQL}"),
        ("postgresql://u:sec#ret@h/d", f"this is not the URL of a PostgreSQL database; {_POSTGRESQL}"),
    ],
)
async def test_url_that_is_not_supported_answers_config_error(url: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        place_of(url)
    assert refused.value.message == f"storage: {message}"
    with pytest.raises(ConfigError):
        async with open_store(url):
            pass


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("sqlite:////var/a@b:c.db", "sqlite:////var/a@b:c.db"),
        ("postgresql://u@h/d?sslmode=require", "postgresql://u@h/d?sslmode=require"),
        ("postgresql://u:secret@h/d", "postgresql://u:[redacted]@h/d"),
        ("postgresql://u:s:e%40cret@h/d", "postgresql://u:[redacted]@h/d"),
        ("postgresql://:secret@h/d", "postgresql://:[redacted]@h/d"),
        ("postgresql:///d?user=u&password=secret&x=1", "postgresql:///d?user=u&password=[redacted]&x=1"),
        (
            "postgresql:///d?passfile=/p&sslpassword=secret",
            "postgresql:///d?passfile=[redacted]&sslpassword=[redacted]",
        ),
    ],
)
def test_shown_url_has_no_password(url: str, text: str) -> None:
    assert shown(url) == text
    assert "secret" not in repr(place_of(url))
