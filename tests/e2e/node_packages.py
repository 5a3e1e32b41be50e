"""Clients that Node runs, installed once with `npm ci` from a folder's own `package-lock.json`.

A machine that has Node and cannot install them fails their tests; one without Node leaves them out and says so
(`conftest.py`).
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path


def has_node() -> bool:
    return bool(shutil.which("node") and shutil.which("npm"))


def install_packages(folder: Path, timeout_s: float) -> None:
    """Install what the folder's lock names into its `node_modules`, unless that is there and younger than the lock."""
    lock, installed = folder / "package-lock.json", folder / "node_modules" / ".package-lock.json"
    if installed.exists() and installed.stat().st_mtime >= lock.stat().st_mtime:
        return
    npm = ["npm", "ci", "--no-audit", "--no-fund"]
    done = subprocess.run(npm, cwd=folder, capture_output=True, text=True, timeout=timeout_s, check=False)
    assert done.returncode == 0, f"npm could not install what {lock} names:\n{done.stderr}"
