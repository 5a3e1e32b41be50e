"""The folder that the commands of one turn share, from the first call to the turn's end. Unaware of commands."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import tempfile
from pathlib import Path

_log = logging.getLogger(__name__)


class Workspace:
    """For one turn."""

    def __init__(self, parent: Path | None) -> None:
        """`parent` is where the folder will be; None for the system's folder for temporary files."""
        self._parent = parent
        self._folder: Path | None = None

    def folder(self) -> Path:
        """The folder, made when it is first asked for, and again where a command removed it; this user's alone.

        Raises:
            OSError: it cannot be made.
        """
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="attache-shell-", dir=self._parent))
        self._folder.mkdir(mode=0o700, exist_ok=True)
        return self._folder

    async def remove(self) -> None:
        """Remove it with all that is in it; a later call would get a new one."""
        folder, self._folder = self._folder, None
        if folder is not None:
            # In a thread, because it is to end even if whoever waits for it is cancelled.
            await asyncio.to_thread(_remove, folder)


def _remove(folder: Path) -> None:
    """By programs that follow no links below it and mind no depth; commands may have taken away their own rights."""
    if folder.is_symlink():  # a command put it there: where it leads is not ours
        folder.unlink()
    for command in (["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
        subprocess.run([*command, "--", folder], stdin=subprocess.DEVNULL, capture_output=True, check=False)  # noqa: S603
    if os.path.lexists(folder):
        _log.warning("A working folder of the shell could not be removed: %s", folder)
