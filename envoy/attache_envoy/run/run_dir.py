"""The directory that one running gateway has for itself: sockets, the compiled configuration, the resolved file."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LONGEST_PARENT = 40
"""A Unix socket's path has at most 107 bytes, and the sockets' own names need most of them."""


@contextmanager
def private_run_dir() -> Iterator[Path]:
    """A new directory that only this user can enter (0700), with a short path; removed with all that is in it."""
    parent = tempfile.gettempdir()
    path = Path(tempfile.mkdtemp(prefix="attache-", dir=parent if len(parent) <= LONGEST_PARENT else "/tmp"))  # noqa: S108 - mkdtemp makes it private
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
