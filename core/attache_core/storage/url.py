"""What a user may write as the place of the store: `sqlite:///FILE`. Unaware of engines and of the file system."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from attache_core.errors import ConfigError

_SUPPORTED = "use sqlite:///FILE, or sqlite:////FILE with an absolute path"


def sqlite_file(url: str) -> Path:
    """The absolute path of the database file that `url` names; a relative one starts at the working directory.

    Raises:
        ConfigError: the URL names no SQLite file. The message never repeats the URL, which may hold a password.
    """
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise ConfigError(f"storage: this is not a URL; {_SUPPORTED}") from error
    if parsed.drivername != "sqlite":
        raise ConfigError(f"storage: {parsed.drivername} is not supported; {_SUPPORTED}")
    if parsed.host:
        raise ConfigError(f"storage: two slashes begin a host name, and a SQLite file has none; {_SUPPORTED}")
    if not parsed.database or parsed.database == ":memory:":
        raise ConfigError(f"storage: a database in memory cannot be shared by several workers; {_SUPPORTED}")
    if parsed.query:
        raise ConfigError(f"storage: {', '.join(parsed.query)}: a SQLite URL takes no options here; {_SUPPORTED}")
    return Path(parsed.database).absolute()
