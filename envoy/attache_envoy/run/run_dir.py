"""The directory that one running gateway has for itself: sockets, the compiled configuration, the resolved file.

A gateway that is killed cannot remove its directory; the next one of the same user does. Invariant: a directory with a
lock file that nobody holds has no owner any more, because the lock is taken before the file gets its name.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

LONGEST_PARENT = 40
"""A Unix socket's path has at most 107 bytes, and the sockets' own names need most of them."""

PREFIX = "attache-"
LOCK = "owner.lock"


@contextmanager
def private_run_dir() -> Iterator[Path]:
    """A new directory that only this user can enter (0700), with a short path; removed with all that is in it."""
    parent = Path(tempfile.gettempdir())
    if len(str(parent)) > LONGEST_PARENT:
        parent = Path("/tmp")  # noqa: S108 - mkdtemp makes it private
    _remove_abandoned(parent)
    path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    try:
        with _locked(path):
            yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _locked(run_dir: Path) -> Iterator[None]:
    unnamed = run_dir / f"{LOCK}.new"
    with unnamed.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        unnamed.rename(run_dir / LOCK)
        yield


def _remove_abandoned(parent: Path) -> None:
    for path in parent.glob(f"{PREFIX}*"):
        # Another user's, still held, without a lock, gone meanwhile: no business of this gateway.
        with suppress(OSError):
            _remove_unless_held(path)


def _remove_unless_held(path: Path) -> None:
    if path.lstat().st_uid != os.getuid():
        return
    with (path / LOCK).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
