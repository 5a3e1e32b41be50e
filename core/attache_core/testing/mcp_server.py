"""An MCP server for the demo and for tests, made with the official SDK: on a free loopback port, over either transport.

Both protocol generations, stateless (2026-07-28) and with sessions (up to 2025-11-25). It counts what it is asked, and
can be told to misbehave: `Fault` at the level of HTTP, and tools that fail, hang, or wait until they are released.

    python -m attache_core.testing.mcp_server --port 0       prints `listening URL` and serves until SIGTERM
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import uvicorn

from attache_core.testing.mcp_observed import Fault, McpServerOptions, RecordedRequest, RunningMcpServer
from attache_core.testing.mcp_recorder import Asgi, Recorder
from attache_core.testing.mcp_sse import SseApp
from attache_core.testing.mcp_tools import BUILTIN_TOOL_NAMES, sdk_server
from attache_core.tools.task_scope import task_scope

__all__ = [
    "BUILTIN_TOOL_NAMES",
    "Fault",
    "McpServerOptions",
    "RecordedRequest",
    "RunningMcpServer",
    "running_mcp_server",
]


def _listener(port: int) -> socket.socket:
    """The protocol is named because asyncio turns Nagle's algorithm off only where it is: 40 ms for every answer."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen()
    return listener


class _Uvicorn(uvicorn.Server):
    """uvicorn without its signal handlers: the process belongs to whoever runs this."""

    @contextlib.contextmanager
    def capture_signals(self) -> Any:  # noqa: ANN401 - the type of a generator of the base class
        yield


@asynccontextmanager
async def running_mcp_server(
    options: McpServerOptions | None = None,
    *,
    port: int = 0,
    **changes: Any,  # noqa: ANN401 - fields of options
) -> AsyncIterator[RunningMcpServer]:
    """Serve in the running loop for as long as the block lasts; `changes` are fields of the options."""
    options = replace(options or McpServerOptions(), **changes)
    with _listener(port) as listener:
        is_sse = options.transport == "sse"
        path = options.path or ("/sse" if is_sse else "/mcp")
        running = RunningMcpServer(f"http://127.0.0.1:{listener.getsockname()[1]}{path}", options)
        sdk = sdk_server(running, options)
        app: Asgi = SseApp(sdk, path)
        if not is_sse:
            app = sdk.streamable_http_app(streamable_http_path=path, json_response=options.json_response)
        recorder = Recorder(app, running, options)
        config = uvicorn.Config(
            recorder,
            log_config=None,
            log_level="critical",
            access_log=False,
            lifespan="on",
            ws="none",
            timeout_graceful_shutdown=1,
        )
        server = _Uvicorn(config)
        async with task_scope() as tasks:
            serving = tasks.start(server.serve(sockets=[listener]))
            await recorder.started.wait()
            try:
                yield running
            finally:
                server.should_exit = True
                recorder.abandon()
                await asyncio.wait([serving])


async def _serve_until_terminated(port: int) -> None:
    ending = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ending.set)
    async with running_mcp_server(port=port) as server:
        print(f"listening {server.url}", flush=True)
        await ending.wait()


def main() -> None:
    """Serve the built-in tools until SIGTERM or SIGINT, then end with status 0."""
    parser = argparse.ArgumentParser(prog="python -m attache_core.testing.mcp_server", description=main.__doc__)
    parser.add_argument("--port", type=int, default=0, help="TCP port on 127.0.0.1; 0 takes a free one (the default)")
    asyncio.run(_serve_until_terminated(parser.parse_args().port))


if __name__ == "__main__":
    main()
