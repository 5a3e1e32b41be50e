"""A whole running gateway: its workers and its Envoy, up together, down together.

Invariants: never half a gateway (a worker that dies is replaced; when that does not help, or Envoy dies, everything
ends with one `GatewayFailed`); Envoy goes first and the workers after it, so that a turn under way finds all that it
needs; when it ends, however it ends, no process, socket or file of it is left.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import structlog

from attache_core.secret import REVEALING
from attache_core.storage.settings import StorageSettings
from attache_envoy.compile.sockets import Sockets
from attache_envoy.gateway import Gateway
from attache_envoy.run.admin import AdminClient, open_admin
from attache_envoy.run.background import background
from attache_envoy.run.bootstrap_file import write_bootstrap
from attache_envoy.run.envoy_binary import checked_envoy
from attache_envoy.run.envoy_process import EnvoyProcess
from attache_envoy.run.failure import GatewayFailed, sole_cause
from attache_envoy.run.listen_address import ensure_free, url_of
from attache_envoy.run.readiness import wait_for_workers, wait_until_ready
from attache_envoy.run.run_dir import private_run_dir
from attache_envoy.run.settings import RunSettings
from attache_envoy.run.workers import Workers

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class RunningGateway:
    """A gateway that listens.

    Attributes:
        url: where clients reach it, `http://HOST:PORT`, the real port; a loopback address when it listens on all.
        admin: Envoy's admin endpoint.
        envoy_pid: Envoy's process id.
        workers: the worker processes; `workers.pids` are their ids at the moment.
        run_dir: its sockets and configuration.
    """

    url: str
    admin: AdminClient
    envoy_pid: int
    workers: Workers
    run_dir: Path

    async def wait_until_ready(self) -> None:
        """Return when a turn would succeed; says in the log what it waits for, when that takes long."""
        await wait_for_workers(self.admin)
        await wait_until_ready(self.url)


@asynccontextmanager
async def running_gateway(
    gateway: Gateway, settings: RunSettings | None = None, *, until: Literal["listening", "ready"] = "ready"
) -> AsyncIterator[RunningGateway]:
    """Run a gateway, with real processes, while the block runs; then drain and stop it.

    Args:
        until: whether the block starts when Envoy listens, or when a turn would succeed (its upstream is up, too).

    Raises:
        ConfigError: the port is taken, or Envoy is missing or too old; before anything is started.
        GatewayFailed: Envoy died, or workers die too often, before the block or instead of its end; or it was not ready
            after `ready_s`.
    """
    settings = settings or RunSettings()
    ensure_free(gateway.address)
    envoy = await asyncio.to_thread(checked_envoy, gateway)
    await asyncio.to_thread(_prepare, gateway.storage)
    try:
        with private_run_dir() as run_dir:
            async with _running(gateway, envoy, run_dir, settings) as running:
                if until == "ready":
                    await _wait_until_ready(running, settings.ready_s)
                yield running
    except BaseExceptionGroup as group:
        raise sole_cause(group) from None


def _prepare(storage: StorageSettings) -> None:
    # Imported only where a gateway is run: the database toolkit takes half a second, and few other commands need it.
    from attache_core.storage.migrate import prepare  # noqa: PLC0415

    prepare(storage)


async def _wait_until_ready(running: RunningGateway, within_s: float) -> None:
    try:
        async with asyncio.timeout(within_s):
            await running.wait_until_ready()
    except TimeoutError:
        raise GatewayFailed(f"The gateway was not ready within {within_s:g} s.") from None


@asynccontextmanager
async def _running(
    gateway: Gateway, binary: Path, run_dir: Path, settings: RunSettings
) -> AsyncIterator[RunningGateway]:
    resolved = run_dir / "gateway.json"
    resolved.write_text(gateway.model_dump_json(context={REVEALING: True}))
    workers = Workers(resolved, run_dir, settings)
    log.info("starting", workers=gateway.workers, envoy_threads=settings.concurrency)
    pid = asyncio.get_running_loop().create_future()
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(background(*(workers.keep_running(i) for i in range(gateway.workers))))
        bootstrap = await asyncio.to_thread(write_bootstrap, gateway, run_dir)
        sockets = Sockets(run_dir)
        admin = await stack.enter_async_context(open_admin(sockets.admin))
        flags = [sockets.unattended(index) for index in range(gateway.workers)]
        secrets = gateway.envoys_secrets
        envoy = EnvoyProcess(binary, bootstrap, admin, settings, lambda: any(flag.exists() for flag in flags), secrets)
        await stack.enter_async_context(background(envoy.run(pid)))
        await envoy.wait_until_live()
        _, port = await admin.tcp_address()
        yield RunningGateway(url_of(gateway.address.host, port), admin, await pid, workers, run_dir)
        await envoy.drain()
