"""What a user may write as the place of the store: `sqlite:///FILE` or `postgresql://USER:PASSWORD@HOST/DATABASE`.

Unaware of engines, drivers and the file system. No message and no name repeats a password, not even of a URL that is
refused. Source: https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING-URIS.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, unquote

from attache_core.errors import ConfigError
from attache_core.secret import HIDDEN

_SQLITE = "use sqlite:///FILE, or sqlite:////FILE with an absolute path"
_POSTGRESQL = "use postgresql://USER:PASSWORD@HOST/DATABASE, with special characters percent-encoded"
_SUPPORTED = f"{_SQLITE}, or postgresql://USER:PASSWORD@HOST/DATABASE"

_SERVER = re.compile(
    r"(?:[^@/?#:]*(?::[^@/?#]*)?@)?(?P<hosts>[^@/?#]*)(?:/(?P<database>[^@/?#]*))?(?:\?(?P<options>[^#]*))?"
)
_PASSWORD = re.compile(r"^(postgres(?:ql)?://[^:/@?]*):[^/?]*@")
_PASSWORD_OPTION = re.compile(r"(?i)([?&][^=&]*pass[^=&]*=)[^&]*")


@dataclass(frozen=True, slots=True)
class SqliteFile:
    """A database in a file."""

    path: Path
    """Absolute."""

    @property
    def name(self) -> str:
        """What messages call it."""
        return str(self.path)


@dataclass(frozen=True, slots=True)
class PostgresqlServer:
    """A database on a server."""

    dsn: str = field(repr=False)
    """The URL as libpq's tools take it, password and options included."""

    name: str
    """What messages call it: hosts and database."""


Place = SqliteFile | PostgresqlServer


def place_of(url: str) -> Place:
    """Where `url` leads; a relative file starts at the working directory.

    Raises:
        ConfigError: it leads nowhere.
    """
    try:
        return parse_place(url)
    except ValueError as error:
        raise ConfigError(f"storage: {error}") from None


def parse_place(url: str) -> Place:
    """The same. Raises ValueError with a sentence that says what would be right."""
    scheme, separator, rest = url.partition("://")
    if not separator or not re.fullmatch(r"[a-z][a-z0-9+.-]*", scheme):
        raise ValueError(f"this is not a URL; {_SUPPORTED}")
    if scheme == "sqlite":
        return _file(rest)
    if scheme in ("postgresql", "postgres"):
        return _server(rest)
    raise ValueError(f"{scheme} is not supported; {_SUPPORTED}")


def shown(url: str) -> str:
    """A URL that leads somewhere, without what is secret in it."""
    return _PASSWORD_OPTION.sub(rf"\1{HIDDEN}", _PASSWORD.sub(rf"\1:{HIDDEN}@", url))


def _file(rest: str) -> SqliteFile:
    host, slash, path = rest.partition("/")
    if host:
        raise ValueError(f"two slashes begin a host name, and a SQLite file has none; {_SQLITE}")
    path, _, options = path.partition("?")
    if options:
        names = ", ".join(name for name, _ in parse_qsl(options, keep_blank_values=True))
        raise ValueError(f"{names}: a SQLite URL takes no options here; {_SQLITE}")
    if not slash or path in ("", ":memory:"):
        raise ValueError(f"a database in memory cannot be shared by several workers; {_SQLITE}")
    return SqliteFile(Path(unquote(path)).absolute())


def _server(rest: str) -> PostgresqlServer:
    found = _SERVER.fullmatch(rest)
    if found is None:
        raise ValueError(f"this is not the URL of a PostgreSQL database; {_POSTGRESQL}")
    database = found["database"]
    if not database:
        raise ValueError(f"the URL names no database; {_POSTGRESQL}")
    options = dict(parse_qsl(found["options"] or "", keep_blank_values=True))
    hosts = found["hosts"] or options.get("host") or "the default host"
    return PostgresqlServer(dsn=f"postgresql://{rest}", name=f"the database {unquote(database)} at {unquote(hosts)}")
