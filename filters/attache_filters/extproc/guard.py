"""Makes whatever a filter or a server yields behave like `Below` promises, so that no filter can tell them apart.

Before the first event a failure is an `AttacheError`; after it, the open items are closed and `response.failed` ends
the stream. Nothing follows the terminal event, and there always is one. A failure that is not an `AttacheError` is a
bug: it is logged here, once, with its traceback, and goes on as `internal_error`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable

import structlog

from attache_core.errors import AttacheError, UpstreamError, internal_error
from attache_core.events.error_codes import BAD_ANSWER, BROKE_OFF
from attache_core.events.event import Event, terminal_event
from attache_core.events.event_stream import Batch, batched, batches
from attache_core.events.watch import StreamWatch
from attache_filters.extproc.scope import Scope

log = structlog.get_logger()

_MISSHAPEN = (KeyError, TypeError, ValueError, AttributeError, IndexError)

Source = Callable[[Scope], AsyncIterator[Event]]
"""Opens a stream of events; what must be closed after it is owned by the scope."""


Check = Callable[[], None]
"""Raises an AttacheError when a stream must not go on."""


def unchecked() -> None:
    """A `Check` that every stream passes."""


@batched
async def guarded(name: str, source: Source, check: Check = unchecked) -> AsyncGenerator[Batch, None]:
    """The events of `source`, kept to the promises above; `name` is whose they are, for the log.

    `check` is asked before each event but the terminal one; what it raises is a failure of the source.

    Raises:
        AttacheError: before the first event only.
    """
    watch = StreamWatch()
    async with Scope() as scope:
        failure: AttacheError | None = None
        begun = False
        try:
            async for batch in batches(scope.own(source(scope))):
                passed, failure = _passed(watch, batch, name, check)
                if passed:
                    begun = True
                    yield passed
                if failure is not None or (watch.ended and len(passed) < len(batch)):
                    break
        except AttacheError as error:
            failure = error
        except Exception as error:  # noqa: BLE001 - the edge between filters: any bug of one ends its turn only
            failure = as_attache_error(name, error)
        if watch.ended:
            return
        failure = failure or UpstreamError("The response ended before it was complete.", code=BROKE_OFF)
        if not begun:
            raise failure
        yield _owed(watch, failure)


def _passed(watch: StreamWatch, batch: Batch, name: str, check: Check) -> tuple[Batch, AttacheError | None]:
    """The events that may pass, which are noted, and why the first that may not is a failure."""
    for place, event in enumerate(batch):
        if watch.ended:
            log.warning("event after the terminal event dropped", source=name, type=event.type)
            return batch[:place], None
        try:
            if not event.is_terminal:
                check()
            watch.observe(event)
        except AttacheError as error:
            return batch[:place], error
        except _MISSHAPEN:
            message = "An event has not the shape that its type requires."
            return batch[:place], UpstreamError(message, code=BAD_ANSWER)
    return batch, None


def _owed(watch: StreamWatch, failure: AttacheError) -> list[Event]:
    try:
        owed = watch.fail(failure)
    except _MISSHAPEN:
        # What went before was not canonical (an inference server's own dialect may pass here): only the end is owed.
        owed = []
    if owed and owed[-1].is_terminal:
        return owed
    error = {"code": failure.code or failure.type, "message": failure.message}
    return [terminal_event({"object": "response", "status": "failed", "error": error, "output": []})]


def as_attache_error(name: str, error: Exception) -> AttacheError:
    """What others are told of a failure in `name`; a bug is logged, and its words are kept inside."""
    if isinstance(error, AttacheError):
        return error
    log.error("a filter failed", source=name, exc_info=error)
    return internal_error()
