"""An answer's bytes, with a limit on how long the next of them may take.

Unaware of what the bytes are. A wait that lasts too long is cancelled from within, as `asyncio.timeout` would do it,
but one timer serves all waits: arming one for each chunk would cost more than reading it. Invariants: only a wait is
ever cut short, never who takes the bytes; a cancellation from outside goes through.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from attache_core.errors import UpstreamError
from attache_core.events.error_codes import TIMEOUT


class PatientBody:
    """The bytes of `body`, read by one task at a time.

    Args:
        idle_timeout_s: how long the next bytes, or the end, may take; how long they lie here before they are taken
            does not count.

    Raises:
        UpstreamError: while iterating, 504, when they took longer.
    """

    def __init__(self, body: AsyncIterator[bytes], idle_timeout_s: float) -> None:
        self._body = body
        self._idle_timeout_s = idle_timeout_s
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Task[object] | None = None
        self._waits_since = 0.0
        self._timed_out = False
        self._timer: asyncio.TimerHandle | None = None

    def __aiter__(self) -> PatientBody:
        return self

    async def __anext__(self) -> bytes:
        waiter = self._waiter = asyncio.current_task()
        assert waiter is not None
        cancelled_before = waiter.cancelling()
        self._waits_since = self._loop.time()
        if self._timer is None:
            self._timer = self._loop.call_later(self._idle_timeout_s, self._look)
        try:
            return await anext(self._body)
        except StopAsyncIteration:
            self.close()
            raise
        except asyncio.CancelledError:
            if not self._timed_out or waiter.cancelling() > cancelled_before + 1:
                raise
            message = f"The inference server said nothing more for {self._idle_timeout_s:g} s."
            raise UpstreamError(message, http_status=504, code=TIMEOUT) from None
        finally:
            self._waiter = None
            if self._timed_out:
                # Also where the body brought bytes, or failed, in spite of it: nobody else takes it back.
                self._timed_out = False
                waiter.uncancel()

    def close(self) -> None:
        """Stop the timer. To be called when nobody reads on."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        """See whether a wait is over its time; look again when this one, or the next, could be."""
        if self._waiter is None:
            self._timer = None
            return
        left = self._waits_since + self._idle_timeout_s - self._loop.time()
        if left > 0:
            self._timer = self._loop.call_later(left, self._look)
            return
        self._timer = None
        self._timed_out = True
        self._waiter.cancel()
