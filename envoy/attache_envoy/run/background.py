"""Jobs that run while a block runs, and end it when they fail."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any


@asynccontextmanager
async def background(*jobs: Coroutine[Any, Any, object]) -> AsyncIterator[None]:
    """Run `jobs` while the block runs; at its end they are cancelled and waited for.

    A job that raises cancels the block, and the exception leaves in the exception group of a task group.
    """
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(job) for job in jobs]
        yield
        for task in tasks:
            task.cancel()
