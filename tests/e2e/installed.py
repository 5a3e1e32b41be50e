"""A package of `examples/`, installed as anybody would, into a folder that this process and the workers then import."""

from __future__ import annotations

import importlib
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from e2e.stage import PYTHON, python_path_with

EXAMPLES = Path(__file__).parents[2] / "examples"


@contextmanager
def installed_example(name: str, target: Path) -> Iterator[Path]:
    """The package's folder in `examples/`, while it can be imported from `target`."""
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "--target", str(target)]
    subprocess.run([PYTHON, "-m", "pip", "install", *options, str(EXAMPLES / name)], check=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", python_path_with(target))
        patch.syspath_prepend(str(target))
        importlib.invalidate_caches()
        yield EXAMPLES / name
