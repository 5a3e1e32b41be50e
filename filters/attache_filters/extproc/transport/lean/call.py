"""The server's end of one RPC: messages in, messages out, and the status that it ends with.

Unaware of what messages say, and of HTTP/2's frames: the connection tells it what came and fetches what is to be sent.
Invariants: what came is credited to the peer only once no message waits to be read, so that a slow reader slows its
peer down, for this RPC alone; what is written in one turn of the event loop leaves together; after the status nothing
is sent; when the peer goes away, the task that serves the RPC is cancelled.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Protocol

from attache_filters.extproc.stream_end import StreamEndedError
from attache_filters.extproc.transport.lean.message_decoder import PREFIX_BYTES, MessageDecoder
from attache_filters.extproc.transport.rpc import RpcError

MAX_JOINED_BYTES = 1 << 16
"""So much may be written in one turn of the event loop before it is sent without waiting for the turn's end."""


CREDIT_BYTES = 1 << 16
"""What came is credited in portions of this size at least, less than a stream's window: most streams need none."""


class Wire(Protocol):
    """What a call needs of its connection."""

    def flush_soon(self, call: Call) -> None:
        """Fetch what the call has to send, before the next turn of the event loop at the latest."""
        ...

    def flush(self) -> None:
        """Fetch and send what all calls have to send."""
        ...

    def credit(self, call: Call, size: int) -> None:
        """Let the peer send so many bytes more."""
        ...

    def is_clogged(self, call: Call) -> bool:
        """Whether the peer does not take fast enough what the call sends."""
        ...


class Call:
    """One RPC.

    Attributes:
        stream_id: its HTTP/2 stream.
        head: the fields of its request.
        answered: whether the head of the response has been sent.
        error: what it ended with, once it is over; None is OK.
    """

    def __init__(self, wire: Wire, stream_id: int, head: Mapping[bytes, bytes]) -> None:
        self.stream_id = stream_id
        self.head = head
        self.answered = False
        self._wire = wire
        self._decoder = MessageDecoder()
        self._unread: deque[bytes] = deque()
        self._uncredited_bytes = 0
        self._unsent: list[bytes] = []
        self._unsent_bytes = 0
        self._half_closed = False
        self._over = False
        self.error: RpcError | None = None
        self._task: asyncio.Task[None] | None = None
        self._waits: list[asyncio.Future[None]] = []

    # For whoever serves it.

    async def read(self) -> bytes | None:
        """The peer's next message, or None after its last."""
        while not self._unread:
            if self._half_closed or self._over:
                return None
            await self._change()
        message = self._unread.popleft()
        self._give_credit()
        return message

    async def write(self, message: bytes) -> None:
        """Send a message; waits while the peer does not take what it is sent. One writer at a time.

        Raises:
            StreamEndedError: the RPC is over.
        """
        if self._over:
            raise StreamEndedError("a message was written")
        self._unsent += (b"\0" + len(message).to_bytes(4, "big"), message)
        self._unsent_bytes += PREFIX_BYTES + len(message)
        self._wire.flush_soon(self)
        if self._unsent_bytes > MAX_JOINED_BYTES:
            self._wire.flush()
        while self._wire.is_clogged(self) and not self._over:
            await self._change()

    def end(self, error: RpcError | None = None) -> None:
        """End the RPC with this status, or OK. No change to one that is over."""
        if not self._over:
            self._over = True
            self.error = error
            self._wire.flush_soon(self)

    # For the connection.

    def start(self, task: asyncio.Task[None]) -> None:
        """The task serves this RPC, and is cancelled when the peer goes away."""
        self._task = task

    def receive(self, data: bytes, *, end: bool) -> None:
        """Bytes of the peer's came, its last if `end`."""
        if self._over:
            return
        self._half_closed = end
        self._uncredited_bytes += len(data)
        try:
            self._unread += self._decoder.feed(data)
            if end:
                self._decoder.close()
        except RpcError as error:
            self.end(error)
            self.cancel()
            return
        self._give_credit()
        self.wake()

    def take(self) -> tuple[bytes, bool]:
        """What is to be sent now, and whether the status follows it."""
        data = b"".join(self._unsent)
        self._unsent.clear()
        self._unsent_bytes = 0
        return data, self._over

    def cancel(self) -> None:
        """The peer is gone, or wants no more: nothing more is sent."""
        self._over = True
        self._unread.clear()
        self.wake()
        task, self._task = self._task, None
        if task is not None:
            task.cancel()

    def wake(self) -> None:
        """Something changed for whoever waits."""
        for wait in self._waits:
            if not wait.done():
                wait.set_result(None)
        self._waits.clear()

    async def _change(self) -> None:
        wait = asyncio.get_running_loop().create_future()
        self._waits.append(wait)
        await wait

    def _give_credit(self) -> None:
        if self._uncredited_bytes >= CREDIT_BYTES and not self._unread:
            self._wire.credit(self, self._uncredited_bytes)
            self._uncredited_bytes = 0
