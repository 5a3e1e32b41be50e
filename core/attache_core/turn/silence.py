"""Breaks the silence of a stream: says something of one's own whenever its source says nothing for a while.

Knows an async generator and a clock; is unaware of what the items are. Invariants:

- The items of the source come out as they are and in order; its failure comes out after them.
- A sign is made only while the source waits and nothing of it is left to come out. So where both number what they make,
  the numbers come out in order, provided that the source yields what it makes at once.
- The source runs in a task of its own, which ends with the generator, however that ends: closing it, or cancelling
  whoever reads it, interrupts a pending read of the source and closes it.
- The source may run ahead of the reader by `MAX_AHEAD` items.
- One timer for the whole stream, which fires once in an interval and looks at when something last came out.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Final, Generic, TypeVar

from attache_core.tools.task_scope import task_scope

MAX_AHEAD: Final = 16
"""How many items may wait for the reader before the source waits too."""

T = TypeVar("T")


async def with_signs_of_life(
    source: AsyncGenerator[T, None], *, interval_s: float, sign: Callable[[], T]
) -> AsyncGenerator[T, None]:
    """The items of `source`, and what `sign` makes after each `interval_s` seconds in which there was none.

    Raises:
        Exception: what `source` raises.
    """
    flow = _Flow[T](interval_s)
    async with task_scope() as tasks:
        tasks.start(flow.pump(source))
        try:
            while True:
                while flow.items:
                    yield flow.take()
                if flow.ended:
                    break
                if await flow.is_silent():
                    yield sign()
        finally:
            flow.stop()
    if flow.failure is not None:
        raise flow.failure


class _Flow(Generic[T]):
    """What the source has said and the reader has not taken, and for how long neither had anything to say."""

    def __init__(self, interval_s: float) -> None:
        self.items: deque[T] = deque()
        self.ended = False
        self.failure: Exception | None = None
        self._stopped = False
        self._room = asyncio.Event()
        self._reader: asyncio.Future[bool] | None = None
        """What the reader waits for, while it does: True for a silence, False for an item or the end."""
        self._interval_s = interval_s
        self._loop = asyncio.get_running_loop()
        self._last = self._loop.time()
        self._timer = self._loop.call_at(self._last + interval_s, self._look)

    async def pump(self, source: AsyncGenerator[T, None]) -> None:
        """Say all that the source says."""
        try:
            async with aclosing(source):
                async for item in source:
                    if self._stopped:
                        break
                    self.items.append(item)
                    self._wake(silent=False)
                    if len(self.items) >= MAX_AHEAD:
                        self._room.clear()
                        await self._room.wait()
        except Exception as error:  # noqa: BLE001 - handed on to whoever reads the stream
            self.failure = error
        finally:
            self.ended = True
            self._wake(silent=False)

    def take(self) -> T:
        """The next item; there is one."""
        self._last = self._loop.time()
        item = self.items.popleft()
        if not self.items:
            self._room.set()
        return item

    async def is_silent(self) -> bool:
        """Wait for an item, for the end, or for the end of an interval: True for the latter alone."""
        self._reader = self._loop.create_future()
        silent = await self._reader
        # An item may have come between the wake-up and now.
        return silent and not self.items and not self.ended

    def stop(self) -> None:
        """No more signs, and no more items: a source may say one even when it is cancelled."""
        self._stopped = True
        self._timer.cancel()

    def _wake(self, *, silent: bool) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(silent)

    def _look(self) -> None:
        now = self._loop.time()
        due = self._last + self._interval_s
        if now >= due:
            self._wake(silent=True)
            self._last, due = now, now + self._interval_s
        self._timer = self._loop.call_at(due, self._look)
