"""The room that a worker process has for tool calls: how many run at once over all turns, and which never together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from weakref import WeakValueDictionary

MAX_WORKER_CALLS = 256


class CallSlots:
    """Shared by all turns of a worker; used within one event loop. Who waits gets in in the order of arrival."""

    def __init__(self, max_calls: int = MAX_WORKER_CALLS) -> None:
        self._slots = asyncio.Semaphore(max_calls)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def taken(self, one_at_a_time: str | None, round_slots: asyncio.Semaphore) -> AsyncIterator[None]:
        """Room for one call: first among those that exclude one another, then in its round, then in the worker.

        In this order, a call that waits for another of its kind takes no room from the others meanwhile.
        """
        async with self._alone(one_at_a_time), round_slots, self._slots:
            yield

    def _alone(self, name: str | None) -> asyncio.Lock | nullcontext[None]:
        if name is None:
            return nullcontext()
        lock = self._locks.get(name)
        if lock is None:
            lock = self._locks[name] = asyncio.Lock()
        return lock
