"""A task group for code that yields inside it.

`asyncio.TaskGroup` wraps whatever leaves its body in an exception group, `GeneratorExit` and API errors included, so an
async generator that yields inside one cannot be closed. Here tasks are children of the block and end with it, and the
block's own exception passes through as it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

T = TypeVar("T")


class TaskScope:
    """Starts tasks that end with the block they were started in. They should not fail: see `task_scope`."""

    def __init__(self, group: asyncio.TaskGroup) -> None:
        self._group = group
        self._running: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run `work` as a child of the block."""
        task = self._group.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def settle(self, timeout_s: float) -> None:
        """Give what runs some time to end by itself."""
        if self._running:
            await asyncio.wait(self._running, timeout=timeout_s)

    def cancel(self) -> None:
        """Cancel all that still runs."""
        for task in self._running:
            task.cancel()


@asynccontextmanager
async def task_scope() -> AsyncIterator[TaskScope]:
    """Tasks started in the scope are cancelled and awaited when the block ends, however it ends.

    As in any task group, a task that fails cancels its siblings and the block.
    """
    ending: BaseException | None = None
    async with asyncio.TaskGroup() as group:
        scope = TaskScope(group)
        try:
            yield scope
        except BaseException as error:  # noqa: BLE001 - raised again below, outside of the group
            ending = error
        scope.cancel()
    if ending is not None:
        raise ending
