"""How much of a response this host may originate in one exchange.

Envoy holds a fast inference server back when the client is slow, but not us: what we originate piles up in Envoy's
memory. Bytes that came to us as the body of the response that we rewrite are not originated, so a response that merely
passes is unlimited. Invariant: once over the limit, whoever next takes an event from below is told so, once; the turn
fails there, and what its filters say of the failure still goes out.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from attache_core.errors import AttacheError, UpstreamError

MAX_END_FACTOR = 8
"""How many times the limit an event stream may become, because its end repeats what it said: in the ends of the open
items and in the terminal event."""


class ReplyBudget:
    """Counts the bytes of one exchange's response.

    Args:
        max_bytes: how many may be originated.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._originated = 0
        self._told = False

    def receive(self, size: int) -> None:
        """So many bytes of the response's body came from Envoy."""
        self._originated -= size

    def send(self, size: int, *, event_stream: bool) -> None:
        """So many bytes are about to be sent.

        Raises:
            UpstreamError: they are over the limit; for an event stream, `MAX_END_FACTOR` times over it.
        """
        self._originated += size
        if self._originated > self._max_bytes * (MAX_END_FACTOR if event_stream else 1):
            raise self._too_large()

    def check(self) -> None:
        """Called for every event that a filter takes. Raises UpstreamError, once, when the limit was passed."""
        if self._originated > self._max_bytes and not self._told:
            self._told = True
            raise self._too_large()

    def _too_large(self) -> AttacheError:
        message = f"The response became larger than {self._max_bytes} bytes, which is all that this gateway sends."
        return UpstreamError(message, code="response_too_large")


class CountedBody:
    """A response body whose bytes count as sent once they are read."""

    def __init__(self, body: AsyncIterator[bytes], budget: ReplyBudget, *, event_stream: bool) -> None:
        self._body = body
        self._budget = budget
        self._event_stream = event_stream

    def __aiter__(self) -> CountedBody:
        return self

    async def __anext__(self) -> bytes:
        data = await anext(self._body)
        self._budget.send(len(data), event_stream=self._event_stream)
        return data
