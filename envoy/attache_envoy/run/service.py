"""A gateway as a service of its operator: it says when it is ready, and a signal stops it.

The first SIGTERM or SIGINT drains; a second one, or one that comes before there is anything to drain, stops at once.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from attache_envoy.gateway import Gateway
from attache_envoy.run.background import background
from attache_envoy.run.failure import sole_cause
from attache_envoy.run.settings import RunSettings
from attache_envoy.run.supervisor import RunningGateway, running_gateway

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class StopSignals:
    """What the signals of this process mean for the task that made this object."""

    def __init__(self) -> None:
        self._task = asyncio.current_task()
        self._waiting = False
        self._first = asyncio.Event()
        self.insisted: signal.Signals | None = None
        """The signal that came when one had come already."""
        self.interrupted = False
        """Whether a signal cancelled the task."""

    async def wait(self) -> None:
        """Return at the first signal. Before this is called, the first signal cancels the task instead."""
        self._waiting = True
        await self._first.wait()

    def receive(self, number: signal.Signals) -> None:
        """Handle one signal."""
        if self._first.is_set():
            self.insisted = number
        if self._task is not None and (self._first.is_set() or not self._waiting):
            self.interrupted = True
            self._task.cancel()
        self._first.set()


async def run_until_stopped(job: Callable[[StopSignals], Awaitable[int]], *, stopped_code: int) -> int:
    """Run the job of a command, with this process's SIGTERM and SIGINT handled; returns the exit code.

    That is what the job returns, `stopped_code` when a signal interrupted it before it waited for one, and 128 plus the
    signal's number when a second signal did. Exception groups with one exception leave as that exception.
    """
    with _stop_signals() as signals:
        try:
            return await job(signals)
        except BaseExceptionGroup as group:
            raise sole_cause(group) from None
        except asyncio.CancelledError:
            if not signals.interrupted:
                raise
            return stopped_code if signals.insisted is None else 128 + signals.insisted


async def serve(gateway: Gateway, settings: RunSettings, signals: StopSignals, announce: Callable[[str], None]) -> int:
    """Run a gateway until a signal ends it; returns 0.

    Args:
        announce: called once, with the gateway's URL, when a turn would succeed.

    Raises:
        ConfigError, GatewayFailed: as `running_gateway`.
    """
    async with (
        running_gateway(gateway, settings, until="listening") as running,
        background(_announce_when_ready(running, announce)),
    ):
        await signals.wait()
    return 0


async def _announce_when_ready(running: RunningGateway, announce: Callable[[str], None]) -> None:
    await running.wait_until_ready()
    announce(running.url)


@contextmanager
def _stop_signals() -> Iterator[StopSignals]:
    loop = asyncio.get_running_loop()
    signals = StopSignals()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, signals.receive, number)
    try:
        yield signals
    finally:
        for number in STOP_SIGNALS:
            loop.remove_signal_handler(number)
