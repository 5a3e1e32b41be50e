"""Messages to Envoy on their way from the filters to the writer of an ext_proc stream.

The chain puts, the writer takes, so that no filter ever waits for a write while Envoy waits for us to read. Body is
merged while it waits: however many events a filter yields in one go, they leave in as few messages as are legal. The
chain waits once more than `max_unsent_bytes` of body are waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from attache_filters.extproc.session import Messages, Session
from attache_filters.extproc.stream_end import StreamEndedError

DEFAULT_MAX_UNSENT_BYTES = 1 << 20
"""How much response body may wait for Envoy before the filters wait too."""


class Outbox:
    """What is to be sent, in order; says everything to Envoy by way of the session, which knows what is legal.

    Raises:
        LocalProtocolError: from every method that says something which is illegal now.
        StreamEndedError: from every method that says something once the stream has ended.
    """

    def __init__(self, session: Session, max_unsent_bytes: int = DEFAULT_MAX_UNSENT_BYTES) -> None:
        self._session = session
        self._max_unsent_bytes = max_unsent_bytes
        self._messages: Messages = []
        self._chunks: list[bytes] = []
        self._unsent_bytes = 0
        self._failure: StreamEndedError | None = None
        self._wanted = asyncio.Event()
        self._taken = asyncio.Event()

    def continue_request(self, path: str, headers: Mapping[str, str], body: bytes) -> None:
        """See `Session.continue_request`."""
        self._put(lambda: self._session.continue_request(path=path, headers=headers, body=body))

    def reply(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """See `Session.reply`."""
        self._put(lambda: self._session.reply(status, headers, body))

    def start(self, status: int, headers: Mapping[str, str]) -> None:
        """Begin the response: the one that came, rewritten, or else a streamed reply to the request that is held."""
        session = self._session
        begin = session.start_response if session.response_came else session.start_reply
        self._put(lambda: begin(status, headers))

    def start_echo(self) -> None:
        """See `Session.echo_response`."""
        self._put(self._session.echo_response)

    async def send_body(self, data: bytes) -> None:
        """More body of the response; waits while too much is unsent."""
        while self._unsent_bytes >= self._max_unsent_bytes and self._failure is None:
            self._taken.clear()
            await self._taken.wait()
        self._check_open()
        self._chunks.append(data)
        self._unsent_bytes += len(data)
        self._wanted.set()

    def end(self) -> None:
        """End the response; what waits of its body and its end are one message."""
        data = self._take_body()
        self._put(lambda: self._session.end(data))

    def fail(self, failure: StreamEndedError) -> None:
        """Nothing can be sent any more."""
        self._failure = failure
        self._taken.set()
        self._wanted.set()

    async def take(self) -> Messages:
        """All that is to be sent now, at least one message."""
        while True:
            self._check_open()
            self._flush_body()
            if self._messages:
                taken, self._messages = self._messages, []
                return taken
            self._wanted.clear()
            await self._wanted.wait()

    def _flush_body(self) -> None:
        if self._chunks:
            self._messages.extend(self._session.send_body(self._take_body()))

    def _take_body(self) -> bytes:
        data = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks = []
        self._unsent_bytes = 0
        self._taken.set()
        return data

    def _put(self, build: Callable[[], Messages]) -> None:
        self._check_open()
        self._messages.extend(build())
        self._wanted.set()

    def _check_open(self) -> None:
        if self._failure is not None:
            raise self._failure
