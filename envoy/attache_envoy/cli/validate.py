"""`attache validate`: every check that can be made without serving."""

from __future__ import annotations

import subprocess
from pathlib import Path

import typer

from attache_core.errors import ConfigError
from attache_core.tools.outbound.secret import redacted
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
from attache_envoy.run.bootstrap_file import write_bootstrap
from attache_envoy.run.envoy_binary import checked_envoy
from attache_envoy.run.run_dir import private_run_dir

ENVOY_CHECK_TIMEOUT_S = 60.0


def validate(  # noqa: PLR0913, PLR0917 - each parameter is an option of the command line
    gateway_file: GatewayFile = None,
    upstream: Upstream = None,
    listen: Listen = None,
    placement: Placement = None,
    workers: Workers = None,
    storage: Storage = None,
) -> None:
    """Check the gateway file, compile it, and let Envoy check the result: `ok`, or what is wrong and exit code 1."""
    try:
        gateway = resolve_gateway(
            gateway_file, upstream=upstream, listen=listen, placement=placement, workers=workers, storage=storage
        )
        _check_with_envoy(gateway)
    except ConfigError as error:
        typer.echo(error.message, err=True)
        raise typer.Exit(1) from None
    typer.echo("ok")


def _check_with_envoy(gateway: Gateway) -> None:
    envoy = checked_envoy(gateway)
    with private_run_dir() as run_dir:
        bootstrap = write_bootstrap(gateway, run_dir)
        complaint = _complaint(envoy, bootstrap)
    if complaint is not None:
        # It may quote the configuration as a whole.
        said = redacted(complaint, gateway.envoys_secrets)
        raise ConfigError(f"Envoy refuses the compiled configuration:\n{said}")


def _complaint(envoy: Path, bootstrap: Path) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603 - the operator names the binary
            [envoy, "--mode", "validate", "--config-path", bootstrap, "--log-level", "error"],
            capture_output=True,
            text=True,
            timeout=ENVOY_CHECK_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"it did not finish its check within {ENVOY_CHECK_TIMEOUT_S:g} s"
    return None if done.returncode == 0 else (done.stderr or done.stdout).strip()
