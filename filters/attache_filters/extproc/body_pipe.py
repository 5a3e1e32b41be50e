"""Bytes of a response on their way from the reader of an ext_proc stream to the filter that reads them.

The reader stops when the pipe is full: not reading the gRPC stream is what holds Envoy back. Whoever no longer wants
the body closes the pipe, and what still comes is dropped, so that the reader never waits for nobody. Bytes that have
come by the time of a read come together. One reader, one writer, one event loop.
"""

from __future__ import annotations

import asyncio

from attache_filters.extproc.stream_end import StreamEndedError

DEFAULT_MAX_UNREAD_BYTES = 1 << 20
"""How much of a response may wait for its filter; one message of Envoy's may go over it."""


class BodyPipe:
    """A response body: an asynchronous iterator of bytes, never empty ones.

    Raises:
        StreamEndedError: while iterating, when the stream ended before the body did.
    """

    def __init__(self, max_unread_bytes: int = DEFAULT_MAX_UNREAD_BYTES) -> None:
        self._max_unread_bytes = max_unread_bytes
        self._chunks: list[bytes] = []
        self._unread_bytes = 0
        self._ended = False
        self._closed = False
        self._failure: StreamEndedError | None = None
        self._changed = asyncio.Event()

    def __aiter__(self) -> BodyPipe:
        return self

    async def __anext__(self) -> bytes:
        while not self._chunks:
            if self._failure is not None:
                raise self._failure
            if self._ended or self._closed:
                raise StopAsyncIteration
            await self._change()
        data = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks = []
        self._unread_bytes = 0
        self._changed.set()
        return data

    async def put(self, data: bytes) -> None:
        """Add bytes; waits while the pipe is full and somebody wants it."""
        while self._unread_bytes >= self._max_unread_bytes and not self._closed:
            await self._change()
        if self._closed:
            return
        self._chunks.append(data)
        self._unread_bytes += len(data)
        self._changed.set()

    def end(self) -> None:
        """The body is complete."""
        self._ended = True
        self._changed.set()

    def fail(self, failure: StreamEndedError) -> None:
        """The rest will not come. No change to a body that is complete."""
        if not self._ended:
            self._failure = failure
        self._changed.set()

    def close(self) -> None:
        """Nobody wants the rest."""
        self._closed = True
        self._chunks = []
        self._changed.set()

    async def aclose(self) -> None:
        """See `close`."""
        self.close()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()
