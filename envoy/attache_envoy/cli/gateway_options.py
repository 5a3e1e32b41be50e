"""The options that every command with a gateway file takes, and the gateway that file and options make together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attache_core.errors import ConfigError
from attache_envoy.gateway import Gateway, default_gateway, load_gateway, with_options

DEFAULT_FILE = Path("gateway.yaml")
"""Read when it exists and no other file is named."""

GatewayFile = Annotated[
    Path | None,
    typer.Argument(metavar="[GATEWAY_FILE]", help=f"The gateway file; ./{DEFAULT_FILE} when it exists."),
]
Upstream = Annotated[
    str | None, typer.Option(metavar="URL", help="The inference server, such as http://127.0.0.1:8000.")
]
Listen = Annotated[str | None, typer.Option(metavar="HOST:PORT", help="Where clients connect; port 0 picks one.")]
Placement = Annotated[
    str | None,
    typer.Option(metavar="split|fused", help="One ext_proc filter per hosted filter, or one per run of them."),
]
Workers = Annotated[
    str | None,
    typer.Option(metavar="N|auto", help="Number of worker processes; auto is one per CPU, and at least two."),
]
Storage = Annotated[
    str | None, typer.Option(metavar="URL", help="Where turns are stored: sqlite:///FILE or postgresql://….")
]


def resolve_gateway(  # noqa: PLR0913 - each parameter is an option of the command line
    file: Path | None,
    *,
    upstream: str | None = None,
    listen: str | None = None,
    placement: str | None = None,
    workers: str | None = None,
    storage: str | None = None,
) -> Gateway:
    """The gateway of `file`, else of ./gateway.yaml, else the default one for `upstream`; options override the file.

    Raises:
        ConfigError: there is neither a file nor an upstream, or they do not make a gateway.
    """
    return with_options(
        _base(file, upstream),
        upstream=upstream,
        listen=listen,
        placement=placement,
        workers=workers,
        storage=storage,
    )


def _base(file: Path | None, upstream: str | None) -> Gateway:
    if file is not None:
        return load_gateway(file)
    if DEFAULT_FILE.exists():
        return load_gateway(DEFAULT_FILE)
    if upstream is None:
        raise ConfigError(
            f"There is no gateway file: name one, write ./{DEFAULT_FILE}, or say where the inference server is with"
            " --upstream URL. `attache up --demo` brings its own."
        )
    return default_gateway(upstream)
