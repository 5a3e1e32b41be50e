"""Exchanges that go on after their streams have ended, because a filter wants its turn finished without its client.

One object for each worker process. Invariants: they end with the block that opened it, cancelled if need be; each is
bounded in time, and all in number, by what its filter said; one that fails is logged and disturbs no other; one that is
cancelled is cancelled once, so that its clean-up runs whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import structlog

from attache_core.tools.task_scope import TaskScope, task_scope
from attache_core.types.turn import Unattended

Work = Callable[[], Coroutine[Any, Any, None]]

Terms = Callable[[], Unattended | None]
"""Asked when the stream has ended: within which bounds the exchange goes on, or None when it does not."""

log = structlog.get_logger(__name__)


class UnattendedTurns:
    """Those of one process.

    Args:
        tasks: where exchanges run that may go on.
        flag: a file that is there while any of them does go on, for whoever waits for the process to be idle.
    """

    def __init__(self, tasks: TaskScope, flag: Path) -> None:
        flag.unlink(missing_ok=True)  # a process that was killed left it
        self._tasks = tasks
        self._flag = flag
        self._count = 0

    async def attend(self, work: Work, terms: Terms) -> None:
        """Run `work`. When this is cancelled, `work` goes on by itself, or is cancelled and waited for.

        Raises:
            Exception: what `work` raises.
        """
        task = self._tasks.start(_outcome(work))
        try:
            failure = await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.done() and not self._leave(task, terms()):
                task.cancel()
                await asyncio.wait([task])
            raise
        if failure is not None:
            raise failure

    def _leave(self, task: asyncio.Task[Exception | None], terms: Unattended | None) -> bool:
        """Let an exchange go on, if it is to and there is room."""
        if terms is None:
            return False
        if self._count >= terms.max_turns:
            log.warning("turn cancelled: too many go on without their clients", max_unattended_turns=terms.max_turns)
            return False
        timer = asyncio.get_running_loop().call_later(terms.timeout_s, self._run_out, task, terms.timeout_s)
        task.add_done_callback(partial(self._ended, timer))
        if self._count == 0:
            self._flag.touch()
        self._count += 1
        return True

    def _run_out(self, task: asyncio.Task[Exception | None], timeout_s: float) -> None:
        log.warning("turn cancelled: it went on without its client for too long", finish_timeout_s=timeout_s)
        task.cancel()

    def _ended(self, timer: asyncio.TimerHandle, task: asyncio.Task[Exception | None]) -> None:
        timer.cancel()
        self._count -= 1
        if self._count == 0:
            self._flag.unlink(missing_ok=True)
        if not task.cancelled() and (failure := task.result()) is not None:
            log.error("a turn without its client was broken off", exc_info=failure)


@asynccontextmanager
async def open_unattended(flag: Path) -> AsyncIterator[UnattendedTurns]:
    """Where exchanges may go on until the block ends; see `UnattendedTurns` for `flag`."""
    async with task_scope() as tasks:
        yield UnattendedTurns(tasks, flag)


async def _outcome(work: Work) -> Exception | None:
    try:
        await work()
    except Exception as error:  # noqa: BLE001 - handed on to whoever attends, or logged
        return error
    return None
