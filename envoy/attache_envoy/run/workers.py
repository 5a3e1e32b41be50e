"""The worker processes of a gateway: started, and started again when they die, until they die too often."""

from __future__ import annotations

import asyncio
from pathlib import Path

import structlog

from attache_envoy.run.child_process import PYTHON, child_process, describe_exit
from attache_envoy.run.deaths import RecentDeaths
from attache_envoy.run.failure import GatewayFailed
from attache_envoy.run.settings import RunSettings

log = structlog.get_logger(__name__)


class Workers:
    """All workers of one gateway."""

    def __init__(self, gateway_file: Path, run_dir: Path, settings: RunSettings) -> None:
        self._gateway_file = gateway_file
        self._run_dir = run_dir
        self._settings = settings
        self._deaths = RecentDeaths(settings)
        self._pids: dict[int, int] = {}

    @property
    def pids(self) -> tuple[int, ...]:
        """The process ids of the workers that run now, in the order of their indexes."""
        return tuple(pid for _, pid in sorted(self._pids.items()))

    async def keep_running(self, index: int) -> None:
        """Run worker `index` until cancelled.

        Raises:
            GatewayFailed: the workers die more often than `max_deaths` allows.
        """
        while True:
            async with child_process(self._command(index), stop_s=self._settings.stop_s) as process:
                self._pids[index] = process.pid
                try:
                    returncode = await process.wait()
                finally:
                    del self._pids[index]
            await self._pause_after_death(index, describe_exit(returncode))

    async def _pause_after_death(self, index: int, how: str) -> None:
        pause_s = self._deaths.record(asyncio.get_running_loop().time())
        if pause_s is None:
            raise GatewayFailed(
                f"Workers died more than {self._settings.max_deaths} times within {self._settings.deaths_window_s:g} s;"
                f" the last was worker {index}, with {how}. What they logged before says why."
            )
        log.warning("worker died and is started again", worker=index, how=how, pause_s=pause_s)
        await asyncio.sleep(pause_s)

    def _command(self, index: int) -> list[str]:
        return [
            *(*PYTHON, "-m", "attache_envoy.run.worker"),
            *("--gateway", str(self._gateway_file)),
            *("--run-dir", str(self._run_dir)),
            *("--index", str(index)),
            *("--grace-s", str(self._settings.grace_s)),
        ]
