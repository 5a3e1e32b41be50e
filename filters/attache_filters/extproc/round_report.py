"""One log line for a round that an inference server failed, whoever asked it.

Knows what came back from below an `InferenceFilter`, and how its events ended; says nothing of what was asked or
answered, which is the client's. The segment and the request's id are in the log's context. What goes wrong before the
server is asked, and a client that leaves, are not its failures.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import structlog

from attache_core.errors import AttacheError, UpstreamError
from attache_core.events.event import Event
from attache_core.events.event_stream import Batch, batches
from attache_core.turn.round import UPSTREAM_REQUEST_ID
from attache_filters.extproc.scope import close_quietly
from attache_filters.extproc.stream_end import StreamEndedError
from attache_filters.sdk.http import HttpResponse

MAX_LOGGED_CHARS = 128
"""Of a value that a server or a client chose."""

FAILED = "response.failed"

log = structlog.get_logger()


class RoundReport:
    """What the line says.

    Args:
        name: the filter that asks.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._answer: HttpResponse | None = None
        self._written = False

    def heard(self, answer: HttpResponse) -> None:
        """The server, or Envoy in its place, began to answer."""
        self._answer = answer

    def raised(self, error: AttacheError) -> None:
        """The round ended with an error, whatever it had said by then."""
        if isinstance(error, StreamEndedError):
            return
        if self._answer is not None or isinstance(error, UpstreamError):
            self._write(error.code)

    def failed(self, event: Event) -> None:
        """The round ended with `response.failed`."""
        said = event.data.get("response")
        error = said.get("error") if isinstance(said, dict) else None
        self._write(error.get("code") if isinstance(error, dict) else None)

    def _write(self, code: object) -> None:
        if self._written:
            return
        self._written = True
        answer = self._answer
        log.warning(
            "the inference server failed",
            filter=self._name,
            upstream_status=None if answer is None else answer.status,
            code=_cut(code),
            upstream_request_id=None if answer is None else _cut(answer.headers.get(UPSTREAM_REQUEST_ID)),
        )


class ReportedEvents:
    """The events of one round, in batches, read once; its failure is reported as it comes by."""

    def __init__(self, events: AsyncIterator[Event], report: RoundReport) -> None:
        self._events = events
        self._batches = batches(events)
        self._report = report

    def __aiter__(self) -> ReportedEvents:
        return self

    async def __anext__(self) -> Batch:
        try:
            batch = await anext(self._batches)
        except AttacheError as error:
            self._report.raised(error)
            raise
        for event in batch:
            if event.type == FAILED:
                self._report.failed(event)
        return batch

    async def aclose(self) -> None:
        """Nobody wants the rest."""
        await close_quietly(self._events)


def _cut(value: object) -> str | None:
    return value[:MAX_LOGGED_CHARS] if isinstance(value, str) else None
