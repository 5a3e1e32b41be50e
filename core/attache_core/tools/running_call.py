"""A gateway-executed call that runs: how far it has come, and its result.

Bounded by construction: of what a tool reports only the latest is kept, and it is told on at most once in an interval.
Unaware of tools and of events.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from typing import Any

from attache_core.tools.gateway_tool import CallProgress, CallResult, Report
from attache_core.tools.task_scope import TaskScope


class RunningCall:
    """Awaited, it gives the result. Made in the scope of a round."""

    def __init__(self, tasks: TaskScope, run: Callable[[Report], Coroutine[Any, Any, CallResult]]) -> None:
        self._latest: CallProgress | None = None
        self._changed = asyncio.Event()
        self._task = tasks.start(run(self._report))
        self._task.add_done_callback(lambda _: self._changed.set())

    def __await__(self) -> Generator[Any, None, CallResult]:
        return self._task.__await__()

    async def reports(self, interval_s: float) -> AsyncGenerator[CallProgress, None]:
        """What it reports until it ends, and never two reports within `interval_s` seconds: the latest then stands."""
        while await self._until_changed():
            assert self._latest is not None
            yield self._latest
            await asyncio.wait([self._task], timeout=interval_s)

    async def _until_changed(self) -> bool:
        """Whether it has something to report; False when it has ended."""
        await self._changed.wait()
        self._changed.clear()
        return not self._task.done()

    def _report(self, progress: CallProgress) -> None:
        self._latest = progress
        self._changed.set()
