"""The Envoy process of a gateway: what it is started with, and when it is up, drained, gone."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import httpx
import structlog

from attache_core.tools.outbound.secret import redacted
from attache_envoy.run.admin import AdminClient
from attache_envoy.run.child_process import child_process, describe_exit
from attache_envoy.run.failure import GatewayFailed
from attache_envoy.run.output import lines_of
from attache_envoy.run.settings import RunSettings

POLL_S = 0.02
"""How often Envoy is asked whether it is up, or drained: over a Unix socket, for a short while only."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class EnvoyProcess:
    """One Envoy to be run.

    Attributes:
        binary: the executable.
        bootstrap: its configuration, a file.
        admin: a client for the admin socket that the configuration names.
        unattended: whether turns go on without their clients, which Envoy does not know of between two rounds.
        secrets: what is left out of what it prints: it may quote the configuration.
    """

    binary: Path
    bootstrap: Path
    admin: AdminClient
    settings: RunSettings
    unattended: Callable[[], bool]
    secrets: Sequence[str] = ()

    async def run(self, pid: asyncio.Future[int]) -> NoReturn:
        """Run Envoy until cancelled; `pid` gets its process id.

        Raises:
            GatewayFailed: it ended by itself, at any time.
        """
        async with child_process(self._command(), stop_s=self.settings.stop_s, capture="stderr") as process:
            pid.set_result(process.pid)
            assert process.stderr is not None
            async for line in lines_of(process.stderr):
                print(redacted(line, self.secrets), file=sys.stderr)
            returncode = await process.wait()
        raise GatewayFailed(f"Envoy ended with {describe_exit(returncode)}. What it logged before says why.")

    async def wait_until_live(self) -> None:
        """Return when the listeners are open.

        Raises:
            GatewayFailed: they are not after `startup_s`.
        """
        if not await _comes_true(self._is_live, self.settings.startup_s):
            raise GatewayFailed(f"Envoy did not open its listeners within {self.settings.startup_s:g} s.")

    async def drain(self) -> None:
        """Refuse new work, and return when no turn is under way any more, or after `grace_s`."""
        # An Envoy that is gone has nothing left to drain, and whoever runs it knows already.
        with suppress(httpx.TransportError):
            log.info("draining", grace_s=self.settings.grace_s)
            await self.admin.drain()
            if not await _comes_true(self._is_idle, self.settings.grace_s):
                log.warning("the grace period is over: turns under way are cut off", grace_s=self.settings.grace_s)

    async def _is_idle(self) -> bool:
        return await self.admin.active_requests() == 0 and not self.unattended()

    async def _is_live(self) -> bool:
        try:
            return await self.admin.is_live()
        except httpx.TransportError:
            return False

    def _command(self) -> list[str]:
        # Hot restart would share memory with another gateway on this machine; we never hand over to a new Envoy.
        return [
            *(str(self.binary), "--config-path", str(self.bootstrap)),
            *("--concurrency", str(self.settings.concurrency)),
            # Of its main loop, errors only: at `warning` it reports our own SIGTERM.
            *("--log-level", "warning", "--component-log-level", "main:error", "--disable-hot-restart"),
        ]


async def _comes_true(condition: Callable[[], Awaitable[bool]], within_s: float) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            while not await condition():  # noqa: ASYNC110 - Envoy can be asked, it does not tell
                await asyncio.sleep(POLL_S)
            return True
    return False
