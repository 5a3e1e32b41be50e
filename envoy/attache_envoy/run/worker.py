"""One worker process: the filters of all segments behind an ext_proc server on a Unix socket of its own.

`python -m attache_envoy.run.worker --gateway RESOLVED.json --run-dir DIRECTORY --index NUMBER --grace-s SECONDS`.
Started and watched by the supervisor. Workers share nothing but the store. The directory says which sockets there
are; SIGTERM lets streams under way end within the grace period.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import structlog
import uvloop

from attache_core.storage.engine import open_store
from attache_core.storage.retention import keep_removing_expired
from attache_core.tools.mcp.servers import open_mcp_servers
from attache_core.tools.task_scope import task_scope
from attache_core.tools.tool_types import open_types
from attache_envoy.compile.plan import plan
from attache_envoy.compile.sockets import Sockets
from attache_envoy.gateway import Gateway
from attache_envoy.run import collector
from attache_envoy.run.log import configure_logs
from attache_envoy.run.tool_types import tool_types
from attache_filters.extproc.loop_client import LoopClient
from attache_filters.extproc.segment import Segment
from attache_filters.extproc.transport.server import running_server
from attache_filters.extproc.unattended import open_unattended
from attache_filters.sdk.filter import Services
from attache_filters.sdk.registry import load_filters

if TYPE_CHECKING:
    from attache_core.turn.compaction.seal import Seal

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class WorkerArguments:
    """The command line of a worker; see the module docstring."""

    gateway: Path
    run_dir: Path
    index: int
    grace_s: float


async def run_worker(arguments: WorkerArguments) -> None:
    """Serve until SIGTERM."""
    collector.hold_off()
    structlog.contextvars.bind_contextvars(worker=arguments.index)
    gateway = Gateway.model_validate_json(arguments.gateway.read_bytes())
    sockets = Sockets(arguments.run_dir)
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    address = f"unix:{sockets.worker(arguments.index)}"
    async with (
        _open_services(gateway) as services,
        _open_segments(gateway, services, sockets, arguments.index) as segments,
        running_server(address, segments, transport=gateway.transport, grace_s=arguments.grace_s),
    ):
        log.debug("worker serves", segments=list(segments))
        # Only a turn with MCP tools needs it, and would wait for it: no reason to serve the others later.
        await services.mcp.load_client()
        collector.begin()
        await stopped.wait()


@asynccontextmanager
async def _open_services(gateway: Gateway) -> AsyncIterator[Services]:
    tools = tool_types(gateway)
    opened = open_store(gateway.storage.url.reveal(), gateway.storage)
    async with opened as store, open_mcp_servers(gateway.mcp) as mcp, open_types(tools), task_scope() as tasks:
        if gateway.storage.retention_days is not None:
            tasks.start(keep_removing_expired(store, gateway.storage.retention_interval_s))
        yield Services(store, mcp, tools, _seal(gateway))


def _seal(gateway: Gateway) -> Seal | None:
    if gateway.compaction is None:
        return None
    # Imported here because of its cryptography, which a process without keys need not load.
    from attache_core.turn.compaction.seal import Seal  # noqa: PLC0415

    return Seal(gateway.compaction.keys)


@asynccontextmanager
async def _open_segments(
    gateway: Gateway, services: Services, sockets: Sockets, index: int
) -> AsyncIterator[dict[str, Segment]]:
    classes, limits = load_filters(), gateway.limits
    async with AsyncExitStack() as stack:
        opened = []
        for planned in plan(gateway, filters=classes).segments:
            filters = tuple(classes[entry.name](entry.config, services) for entry in planned.entries)
            for each in filters:
                await each.open()
                stack.push_async_callback(each.close)
            loop = None
            if planned.calls_below_again:
                loop = LoopClient(str(sockets.loop(planned.name)))
                stack.push_async_callback(loop.close)
            opened.append((planned, filters, loop))
        # Opened last: turns that go on without their clients end before what they run with is closed.
        unattended = await stack.enter_async_context(open_unattended(sockets.unattended(index)))
        yield {
            planned.name: Segment(
                planned.name,
                filters,
                loop,
                max_request_bytes=limits.max_request_bytes if planned.is_first else limits.max_turn_bytes,
                max_reply_bytes=limits.max_reply_bytes,
                unattended=unattended if planned.outlives_client else None,
            )
            for planned, filters, loop in opened
        }


def parse_arguments(arguments: list[str] | None = None) -> WorkerArguments:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="attache_envoy.run.worker")
    parser.add_argument("--gateway", type=Path, required=True)
    parser.add_argument("--run-dir", type=Path, required=True)
    parser.add_argument("--index", type=int, required=True)
    parser.add_argument("--grace-s", type=float, required=True)
    return WorkerArguments(**vars(parser.parse_args(arguments)))


if __name__ == "__main__":
    configure_logs()
    uvloop.run(run_worker(parse_arguments()))
