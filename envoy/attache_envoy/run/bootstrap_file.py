"""What Envoy is started with: the compiled gateway, in a file."""

from __future__ import annotations

from pathlib import Path

from attache_core import json_codec
from attache_core.json_codec import Json
from attache_envoy.gateway import Gateway


def compiled_bootstrap(gateway: Gateway, run_dir: Path) -> Json:
    """The Envoy bootstrap of a gateway whose sockets are in `run_dir`."""
    # The classes of Envoy's configuration take a second to import: whoever compiles pays for it, the workers do not,
    # and while the supervisor does, they start.
    from attache_envoy.compile.bootstrap import compile_bootstrap  # noqa: PLC0415
    from attache_envoy.compile.plan import plan  # noqa: PLC0415
    from attache_envoy.compile.sockets import Sockets  # noqa: PLC0415

    return compile_bootstrap(gateway, plan(gateway), Sockets(run_dir))


def write_bootstrap(gateway: Gateway, run_dir: Path) -> Path:
    """Compile a gateway into a file in `run_dir`, and return its path."""
    path = run_dir / "envoy.json"
    path.write_bytes(json_codec.encode(compiled_bootstrap(gateway, run_dir)))
    return path
