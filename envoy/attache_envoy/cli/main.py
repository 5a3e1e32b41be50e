"""The `attache` command: its sub-commands, and the one place where errors become messages and exit codes.

Exit codes: 0 done; 1 something that ran failed; 2 the configuration or the command line is wrong.
"""

from __future__ import annotations

import gc
import sys
from importlib.metadata import version
from typing import Annotated

import typer

from attache_core.errors import ConfigError
from attache_envoy.cli.demo import demo
from attache_envoy.cli.filters import filters
from attache_envoy.cli.migrate import migrate
from attache_envoy.cli.render import render
from attache_envoy.cli.up import up
from attache_envoy.cli.validate import validate
from attache_envoy.run.failure import GatewayFailed

DISTRIBUTION = "agentic-attache"

app = typer.Typer(
    name="attache",
    help="A stateful, tool-running, OpenAI-compatible Responses API in front of any inference server.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (up, render, validate, migrate, filters, demo):
    app.command()(command)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"attache {version(DISTRIBUTION)}")
        raise typer.Exit


@app.callback()
def attache(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """A stateful, tool-running, OpenAI-compatible Responses API in front of any inference server."""


def main() -> None:
    """Run the command line; never shows a traceback for what the user can put right."""
    # The last collection before the exit would look at all that was imported: half a second for nothing.
    gc.freeze()
    try:
        app()
    except ConfigError as error:
        typer.echo(error.message, err=True)
        sys.exit(2)
    except GatewayFailed as error:
        typer.echo(str(error), err=True)
        sys.exit(1)
