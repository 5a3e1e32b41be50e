"""`attache render`: what a gateway file becomes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
import yaml

from attache_envoy.cli.gateway_options import (
    GatewayFile,
    Listen,
    Placement,
    Storage,
    Upstream,
    Workers,
    resolve_gateway,
)
from attache_envoy.gateway import Gateway
from attache_envoy.run.bootstrap_file import compiled_bootstrap
from attache_envoy.run.envoy_binary import checked_envoy

RUN_DIR = Path("/run/attache")


def render(  # noqa: PLR0913, PLR0917 - each parameter is an option of the command line
    gateway_file: GatewayFile = None,
    upstream: Upstream = None,
    listen: Listen = None,
    placement: Placement = None,
    workers: Workers = None,
    storage: Storage = None,
    expanded: Annotated[
        bool, typer.Option("--expanded", help="Print the gateway file with all its defaults instead.")
    ] = False,
    run_dir: Annotated[
        Path, typer.Option(metavar="DIRECTORY", help="Where the sockets of Envoy and the workers will be.")
    ] = RUN_DIR,
) -> None:
    """Print the Envoy bootstrap that the gateway file compiles to, or, with --expanded, the file with its defaults.

    Keys and passwords are shown as [redacted]."""
    gateway = resolve_gateway(
        gateway_file, upstream=upstream, listen=listen, placement=placement, workers=workers, storage=storage
    )
    if expanded:
        typer.echo(yaml.safe_dump(gateway.model_dump(mode="json", exclude_none=True), sort_keys=False), nl=False)
        return
    checked_envoy(gateway)
    typer.echo(_bootstrap_text(gateway, run_dir), nl=False)


def _bootstrap_text(gateway: Gateway, run_dir: Path) -> str:
    from attache_envoy.compile.bootstrap import render  # noqa: PLC0415 - see `compiled_bootstrap`

    return render(compiled_bootstrap(gateway.redacted(), run_dir))
