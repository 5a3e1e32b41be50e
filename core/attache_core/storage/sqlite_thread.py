"""A thread with a connection to a SQLite file of its own, and what waits for such threads.

A call is one errand to a thread, however many statements it has: going there and back costs more than most statements.
Unaware of SQL. Invariants: whatever waits belongs to the event loop alone, so nothing is locked; a thread has one
errand at a time; a connection that an errand failed with is not used again; one whose file was removed or replaced is
dropped before it is used, because SQLite would go on writing, without error, into a file that nobody can reach any
more.
Source: https://www.sqlite.org/howtocorrupt.html, section 4.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final

from attache_core.storage.database import NoConnectionError

THREAD_NAME: Final = "attache-sqlite"


@dataclass(frozen=True, slots=True)
class Failed:
    """What became of a call that raised."""

    error: BaseException


@dataclass(slots=True, eq=False)
class Call:
    """Something that somebody waits for; `do` is called in a thread, perhaps again, `future` belongs to the loop."""

    do: Callable[[sqlite3.Connection], object]
    durable: bool
    future: asyncio.Future[Any]
    timer: asyncio.TimerHandle | None = None

    @property
    def is_given_up(self) -> bool:
        """Whether nobody waits for it any more. May be asked in any thread."""
        return self.future.cancelled()


Errand = Callable[[sqlite3.Connection, Sequence[Call]], Sequence[object]]
"""What a thread does with the calls that it is given: their results or `Failed`, in order, of as many as it did."""


@dataclass(frozen=True, slots=True)
class Terms:
    """How calls wait for a connection.

    Attributes:
        threads: connections that there may be.
        together: calls that one of them is given at a time.
        max_waiting: calls that may wait.
        timeout_s: how long each of them may.
    """

    threads: int
    together: int
    max_waiting: int
    timeout_s: float


class SqliteThread:
    """Started and connected with its first errand. `connect` opens the connection, in the thread."""

    def __init__(self, path: Path, connect: Callable[[], sqlite3.Connection], errand: Errand) -> None:
        self._path = path
        self._connect = connect
        self._errand = errand
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._inbox: SimpleQueue[tuple[Sequence[Call], Callable[[Sequence[object]], None]] | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._ended = self._loop.create_future()
        self._thread = Thread(target=self._work, name=THREAD_NAME, daemon=True)

    def send(self, calls: Sequence[Call], then: Callable[[Sequence[object]], None]) -> None:
        """Do these calls, and call `then` in the loop."""
        try:
            if self._thread.ident is None:
                self._thread.start()
        except RuntimeError as error:  # the process may have no more threads now; later it may
            failed = Failed(NoConnectionError(str(error)))
            self._loop.call_soon(then, [failed] * len(calls))
            return
        self._inbox.put((calls, then))

    async def close(self) -> None:
        """Let it finish what it does, and end."""
        if self._thread.ident is not None:
            self._inbox.put(None)
            await asyncio.shield(self._ended)  # it ends all the same when nobody waits for it any more
            self._thread.join()

    def _work(self) -> None:
        while (errand := self._inbox.get()) is not None:
            calls, then = errand
            self._loop.call_soon_threadsafe(then, self._done(calls))
        self._drop()
        self._loop.call_soon_threadsafe(self._ended.set_result, None)

    def _done(self, calls: Sequence[Call]) -> Sequence[object]:
        try:
            return self._errand(self._connected(), calls)
        except Exception as error:  # noqa: BLE001 - the thread's edge: who waits for the calls is told
            self._drop()
            return [Failed(error)] * len(calls)

    def _connected(self) -> sqlite3.Connection:
        file = _identity(self._path)
        if self._connection is None or file != self._file:
            self._drop()
            self._connection, self._file = self._connect(), file
        return self._connection

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class SqliteThreads:
    """A number of threads, and the calls that wait until one of them is free, in order."""

    def __init__(self, terms: Terms, new_thread: Callable[[], SqliteThread]) -> None:
        self._terms = terms
        self._free = [new_thread() for _ in range(terms.threads)]
        self._threads = tuple(self._free)
        self._waiting: deque[Call] = deque()
        self._loop = asyncio.get_running_loop()
        self._closed = False

    async def call(self, do: Callable[[sqlite3.Connection], object], *, durable: bool = True) -> Any:  # noqa: ANN401 - what `do` answers
        """What `do` answers. A call that is cancelled before it has begun does nothing.

        Raises:
            NoConnectionError: too many calls wait, or this one did for too long.
            Exception: what `do` raises.
        """
        if self._closed:
            raise NoConnectionError("the store is closed")
        call = Call(do, durable, self._loop.create_future())
        self._waiting.append(call)
        if self._free:
            self._send()
        elif len(self._waiting) > self._terms.max_waiting:
            self._waiting.pop()
            raise NoConnectionError(f"{self._terms.max_waiting} calls wait for a connection")
        else:
            call.timer = self._loop.call_later(self._terms.timeout_s, self._expire, call)
        try:
            return await call.future
        except asyncio.CancelledError:
            self._withdraw(call)
            raise

    async def close(self) -> None:
        """End all threads; calls that wait are refused."""
        self._closed = True
        self._refuse_all()
        for thread in self._threads:
            await thread.close()

    def _send(self) -> None:
        """Give the next calls to a thread, where there are both."""
        while self._free and self._waiting:
            calls = [self._waiting.popleft() for _ in range(min(self._terms.together, len(self._waiting)))]
            for call in calls:
                _stop_timer(call)
            thread = self._free.pop()
            thread.send(calls, partial(self._receive, thread, calls))

    def _receive(self, thread: SqliteThread, calls: Sequence[Call], results: Sequence[object]) -> None:
        for call, result in zip(calls, results, strict=False):
            if call.future.done():
                continue
            if isinstance(result, Failed):
                call.future.set_exception(result.error)
            else:
                call.future.set_result(result)
        self._waiting.extendleft(call for call in reversed(calls[len(results) :]) if not call.future.done())
        if self._closed:
            self._refuse_all()
        self._free.append(thread)
        self._send()

    def _expire(self, call: Call) -> None:
        self._refuse(call, f"no connection was free for {self._terms.timeout_s:g} s")

    def _refuse_all(self) -> None:
        for call in list(self._waiting):
            self._refuse(call, "the store is closed")

    def _refuse(self, call: Call, why: str) -> None:
        self._withdraw(call)
        if not call.future.done():
            call.future.set_exception(NoConnectionError(why))

    def _withdraw(self, call: Call) -> None:
        _stop_timer(call)
        if call in self._waiting:
            self._waiting.remove(call)


def _stop_timer(call: Call) -> None:
    if call.timer is not None:
        call.timer.cancel()
        call.timer = None


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
