"""`attache demo`: a conversation through a real Envoy, from nothing, and a check of everything it shows."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import typer
from rich.console import Console

from attache_envoy.cli.demo_conversation import Conversation
from attache_envoy.cli.demo_servers import DemoServers, running_demo_servers
from attache_envoy.cli.gateway_options import Placement
from attache_envoy.gateway import default_gateway, with_options
from attache_envoy.run.failure import GatewayFailed
from attache_envoy.run.log import configure_logs
from attache_envoy.run.service import run_until_stopped
from attache_envoy.run.settings import RunSettings
from attache_envoy.run.supervisor import RunningGateway, running_gateway

SETTINGS = RunSettings(grace_s=2.0, envoy_concurrency=1)


def demo(placement: Placement = None) -> None:
    """Hold a conversation through a real Envoy: a plain turn, a streamed turn with a tool, the stored response."""
    configure_logs("warning")
    raise typer.Exit(asyncio.run(run_until_stopped(lambda _: _run_demo(placement), stopped_code=1)))


async def _run_demo(placement: str | None) -> int:
    console = Console(highlight=False)
    console.print("Starting a scripted model server, an MCP server, Envoy, and a worker process …")
    with tempfile.TemporaryDirectory(prefix="attache-demo-") as directory:
        async with running_demo_servers() as servers:
            gateway = with_options(
                default_gateway(servers.model_url),
                listen="127.0.0.1:0",
                workers=1,
                placement=placement,
                storage=f"sqlite:///{Path(directory) / 'demo.db'}",
            )
            async with running_gateway(gateway, SETTINGS) as running:
                return await _converse(running, servers, gateway.placement, console)


async def _converse(running: RunningGateway, servers: DemoServers, placement: str, console: Console) -> int:
    async with Conversation(running, servers.mcp_url, console) as conversation:
        conversation.introduce(servers.model_url, placement)
        first = await conversation.plain_turn()
        second = await conversation.streamed_turn(first)
        await conversation.read_back(second)
    if conversation.failures:
        raise GatewayFailed("The demo failed: " + "; ".join(conversation.failures) + ".")
    console.print("\n[bold green]All as it should be.[/] In front of your own server: attache up --upstream URL")
    return 0
