"""Connections to one server, kept open for the next request.

Knows when a connection may be used again; unaware of where the server is: a `Dial` says how to connect. A request is
sent once, whatever becomes of it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from weakref import WeakSet

from attache_core.http1.connection import Http1Connection, Http1Response
from attache_core.http1.request import Http1Request

Dial = Callable[[Callable[[], Http1Connection]], Awaitable[Http1Connection]]
"""Makes a connection of the protocol that it is given, within a time of its own. What it raises, `send` raises."""


class Http1Pool:
    """Sends requests to one server, each over a connection of its own while it takes.

    Args:
        max_idle: how many connections are kept for reuse; how many may be open is not limited here.
        idle_s: how long one is kept, in seconds.
    """

    def __init__(self, dial: Dial, *, max_idle: int, idle_s: float) -> None:
        self._dial = dial
        self._max_idle = max_idle
        self._idle_s = idle_s
        self._idle: deque[tuple[float, Http1Connection]] = deque()
        self._open: WeakSet[Http1Connection] = WeakSet()
        self._closed = False
        self._timer: asyncio.TimerHandle | None = None

    async def send(self, request: Http1Request) -> Http1Response:
        """Send one request; the response's body arrives as it is read, and must be read to its end or closed.

        Raises:
            BrokenOffError: no response came; also while its body is read.
            ValueError: the request is none.
        """
        data = request.encode()
        connection = self._kept()
        if connection is None:
            connection = await self._dial(lambda: Http1Connection(self._keep))
            self._open.add(connection)
            if self._closed:
                connection.close()
        return await connection.send(data, is_head=request.method == "HEAD")

    def close(self) -> None:
        """Close every connection; responses that are not complete break off, and no further request is sent."""
        self._closed = True
        self._max_idle = 0
        if self._timer is not None:
            self._timer.cancel()
        for connection in list(self._open):
            connection.close()

    def _kept(self) -> Http1Connection | None:
        now = asyncio.get_running_loop().time()
        while self._idle:
            expires_at, connection = self._idle.pop()
            if now < expires_at and connection.reusable:
                return connection
            connection.close()
        return None

    def _keep(self, connection: Http1Connection) -> None:
        self._idle.append((asyncio.get_running_loop().time() + self._idle_s, connection))
        self._drop_idle()

    def _drop_idle(self) -> None:
        """Those that nobody has used for longest are at the front; one timer for all says when the next one goes."""
        loop = asyncio.get_running_loop()
        while self._idle and (len(self._idle) > self._max_idle or self._idle[0][0] <= loop.time()):
            self._idle.popleft()[1].close()
        if self._idle and self._timer is None:
            self._timer = loop.call_at(self._idle[0][0], self._time_is_up)

    def _time_is_up(self) -> None:
        self._timer = None
        self._drop_idle()
