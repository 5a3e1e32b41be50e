"""From an upstream's bytes or payloads to the client's events, as a round does it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence

from attache_core.events.accumulator import DEFAULT_MAX_BYTES, Accumulator
from attache_core.events.dialects import Dialect, dialect_for
from attache_core.events.event import Event
from attache_core.events.model_events import Finished, ModelEvent
from attache_core.events.sequencer import Sequencer
from attache_core.events.sse import SseDecoder
from attache_core.events.text_done import SaidEvent
from attache_core.json_codec import Json

COMPLETED_AT = 1_800_000_001


def in_progress_response() -> Json:
    """A response object as a turn begins with it."""
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_800_000_000,
        "status": "in_progress",
        "completed_at": None,
        "error": None,
        "incomplete_details": None,
        "model": "asked-for",
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": None,
    }


def counted_ids() -> Callable[[str], str]:
    """Ids that can be told in advance: `message_0`, `reasoning_1`, …"""
    numbers = itertools.count()
    return lambda item_type: f"{item_type}_{next(numbers)}"


def counted_calls() -> Callable[[], str]:
    numbers = itertools.count()
    return lambda: f"call_{next(numbers)}"


def new_accumulator(*, max_bytes: int = DEFAULT_MAX_BYTES) -> Accumulator:
    return Accumulator(make_call_id=counted_calls(), max_bytes=max_bytes)


def sequenced(strict: Iterable[ModelEvent]) -> list[Event]:
    """The client's events of one round's strict events."""
    sequencer = Sequencer(in_progress_response(), make_id=counted_ids())
    events: list[Event] = []
    for said in strict:
        if isinstance(said, Finished):
            events += sequencer.finish(said, completed_at=COMPLETED_AT)
        else:
            events += sequencer.emit(said)
    return events


def accumulated(said: Iterable[SaidEvent], accumulator: Accumulator | None = None) -> list[ModelEvent]:
    """The strict events of all that a dialect says, up to and with the end."""
    accumulator = accumulator or new_accumulator()
    return [event for one in said for event in accumulator.feed(one)] + accumulator.close()


def read_payloads(payloads: Iterable[Json], dialect: Dialect | None = None) -> list[SaidEvent]:
    reader = dialect or dialect_for("auto")
    return [said for payload in payloads for said in reader.read(payload)]


def read_stream(chunks: Iterable[bytes], dialect: Dialect | None = None) -> list[SaidEvent]:
    reader, decoder = dialect or dialect_for("auto"), SseDecoder()
    said = [said for chunk in chunks for frame in decoder.feed(chunk) for said in reader.read_data(frame.data)]
    decoder.close()
    return said


def client_events(payloads: Sequence[Json], dialect: Dialect | None = None) -> list[Event]:
    return sequenced(accumulated(read_payloads(payloads, dialect)))
