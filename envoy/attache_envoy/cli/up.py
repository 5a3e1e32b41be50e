"""`attache up`: run a gateway until a signal stops it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated

import typer

from attache_envoy.cli.demo_servers import DemoServers, running_demo_servers
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
from attache_envoy.run.log import configure_logs
from attache_envoy.run.service import StopSignals, run_until_stopped, serve
from attache_envoy.run.settings import RunSettings

DEFAULTS = RunSettings()

DEMO_HINT = """
Try it:

  curl {url}/v1/responses -H 'content-type: application/json' -d '{{
    "model": "attache-demo", "input": "Hello!"}}'

Then a second turn, with a tool that the gateway runs; put in the id of the first response:

  curl -N {url}/v1/responses -H 'content-type: application/json' -d '{{
    "model": "attache-demo", "input": "How is the weather in Paris?", "stream": true,
    "previous_response_id": "resp_...",
    "tools": [{{"type": "mcp", "server_label": "weather", "server_url": "{mcp_url}", "require_approval": "never"}}]}}'
"""


def up(  # noqa: PLR0913, PLR0917 - each parameter is an option of the command line
    gateway_file: GatewayFile = None,
    upstream: Upstream = None,
    listen: Listen = None,
    placement: Placement = None,
    workers: Workers = None,
    storage: Storage = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Start a scripted model server and an MCP server to play with.")
    ] = False,
    grace_s: Annotated[
        float, typer.Option(min=0, help="Seconds that turns under way may go on after SIGTERM.")
    ] = DEFAULTS.grace_s,
    concurrency: Annotated[
        int | None, typer.Option(min=1, help="Envoy's worker threads; one per CPU when not given.")
    ] = None,
) -> None:
    """Run the gateway. Prints one line, `ready http://HOST:PORT`, when a turn would succeed; Ctrl-C stops it."""
    if demo and upstream is not None:
        raise typer.BadParameter("--demo brings its own upstream: leave out --upstream.")
    configure_logs()
    settings = RunSettings(grace_s=grace_s, envoy_concurrency=concurrency)

    def resolve(upstream: str | None) -> Gateway:
        return resolve_gateway(
            gateway_file, upstream=upstream, listen=listen, placement=placement, workers=workers, storage=storage
        )

    async def job(signals: StopSignals) -> int:
        if demo:
            return await _serve_demo(resolve, settings, signals)
        return await serve(resolve(upstream), settings, signals, _announce)

    raise typer.Exit(asyncio.run(run_until_stopped(job, stopped_code=0)))


def _announce(url: str) -> None:
    typer.echo(f"ready {url}")


async def _serve_demo(resolve: Callable[[str], Gateway], settings: RunSettings, signals: StopSignals) -> int:
    async with running_demo_servers() as servers:
        return await serve(resolve(servers.model_url), settings, signals, lambda url: _announce_demo(url, servers))


def _announce_demo(url: str, servers: DemoServers) -> None:
    _announce(url)
    typer.echo(DEMO_HINT.format(url=url, mcp_url=servers.mcp_url), err=True)
