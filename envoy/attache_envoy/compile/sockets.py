"""Where the Unix sockets of one running gateway are, and what else its processes tell each other by files. Pure:
nothing is created here."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from attache_core.errors import ConfigError

MAX_SOCKET_PATH_BYTES = 107
"""`sun_path` of Linux without its terminating zero."""


@dataclass(frozen=True, slots=True)
class Sockets:
    """The sockets in a directory that belongs to one gateway alone.

    Each path may raise `ConfigError`: the directory's path is too long for a Unix socket.
    """

    run_dir: Path

    @property
    def admin(self) -> Path:
        """Envoy's admin endpoint."""
        return self._path("admin")

    def worker(self, index: int) -> Path:
        """The gRPC endpoint of a worker process, from 0."""
        return self._path(f"worker-{index}")

    def loop(self, segment: str) -> Path:
        """The listener whose chain is what stands below a segment."""
        readable = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in segment)[:20]
        return self._path(f"loop-{readable}-{hashlib.sha256(segment.encode()).hexdigest()[:8]}")

    def unattended(self, index: int) -> Path:
        """No socket: a file that is there while a worker process has turns that go on without their clients."""
        return self.run_dir / f"worker-{index}.unattended"

    def _path(self, name: str) -> Path:
        path = self.run_dir / f"{name}.sock"
        size = len(str(path).encode())
        if size > MAX_SOCKET_PATH_BYTES:
            raise ConfigError(
                f"The path of a Unix socket may have {MAX_SOCKET_PATH_BYTES} bytes; {path} has {size}. "
                "Choose a shorter directory for run-time files."
            )
        return path
