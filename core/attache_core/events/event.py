"""A canonical streaming event: one server-sent event of the public Responses API, decoded."""

from __future__ import annotations

from dataclasses import dataclass

from attache_core.json_codec import Json

TERMINAL_TYPES = frozenset({"response.completed", "response.incomplete", "response.failed"})
"""The types of which exactly one ends a stream; each carries the final `response`."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a turn or of a round.

    Attributes:
        type: such as `response.output_text.delta`.
        data: the whole payload, `type` and `sequence_number` included. Treat as read-only.
    """

    type: str
    data: Json

    @property
    def is_terminal(self) -> bool:
        """Whether this event ends the stream; then `data["response"]` is the final response object."""
        return self.type in TERMINAL_TYPES


def terminal_event(response: Json, sequence_number: int = 0) -> Event:
    """The terminal event that carries `response`: what a non-streamed answer is, in a chain of filters."""
    status = response.get("status")
    kind = f"response.{status}" if status in ("completed", "incomplete", "failed") else "response.failed"
    return Event(kind, {"type": kind, "response": response, "sequence_number": sequence_number})
