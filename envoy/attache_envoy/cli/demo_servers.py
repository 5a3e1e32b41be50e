"""The two servers that the demo needs besides the gateway: a scripted model server and an MCP server, on loopback.

They are processes of their own, as real ones would be, and die with the block that started them.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import NoReturn

from attache_envoy.run.background import background
from attache_envoy.run.child_process import PYTHON, child_process, describe_exit
from attache_envoy.run.failure import GatewayFailed
from attache_envoy.run.output import lines_of

MODEL_SERVER = "attache_core.testing.model_server"
MCP_SERVER = "attache_core.testing.mcp_server"
ANNOUNCEMENT = "listening "
STARTUP_S = 30.0
STOP_S = 2.0


@dataclass(frozen=True, slots=True)
class DemoServers:
    """Where the demo's servers listen, as URLs."""

    model_url: str
    mcp_url: str


@asynccontextmanager
async def running_demo_servers() -> AsyncIterator[DemoServers]:
    """Run both servers while the block runs.

    Raises:
        GatewayFailed: one of them does not start within `STARTUP_S`, or ends; alone in an exception group.
    """
    async with AsyncExitStack() as stack:
        loop = asyncio.get_running_loop()
        model_url: asyncio.Future[str] = loop.create_future()
        mcp_url: asyncio.Future[str] = loop.create_future()
        await stack.enter_async_context(background(_run(MODEL_SERVER, model_url), _run(MCP_SERVER, mcp_url)))
        try:
            async with asyncio.timeout(STARTUP_S):
                servers = DemoServers(await model_url, await mcp_url)
        except TimeoutError:
            raise GatewayFailed(f"The demo's servers did not start within {STARTUP_S:g} s.") from None
        yield servers


async def _run(module: str, url: asyncio.Future[str]) -> NoReturn:
    command = (*PYTHON, "-m", module, "--port", "0")
    async with child_process(command, stop_s=STOP_S, capture="stdout") as process:
        await _relay_output(process, url)
        returncode = await process.wait()
    raise GatewayFailed(f"The demo's server {module} ended with {describe_exit(returncode)}.")


async def _relay_output(process: Process, url: asyncio.Future[str]) -> None:
    assert process.stdout is not None
    async for text in lines_of(process.stdout):
        if text.startswith(ANNOUNCEMENT) and not url.done():
            url.set_result(text.removeprefix(ANNOUNCEMENT).strip())
        else:
            print(text, file=sys.stderr)
