"""Says of one answer of the Responses API, or of one event of its streams, what is wrong with it; counts what it saw.

Knows the schemas; is unaware of HTTP and of the order of events, which `core/events/canonical_stream.py` checks.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

from attache_core.events.event import TERMINAL_TYPES
from attache_core.json_codec import Json
from conformance.schemas import EVENT_MODELS, OBJECT_MODELS, Schema, compiled

ANSWERS = tuple(kind for kind in OBJECT_MODELS if kind != "error")
"""The kinds of a JSON answer that is no error."""


class NotConformantError(AssertionError):
    """An answer that is not the API's: what it is, and each field that is missing, unknown or of the wrong type."""

    def __init__(self, what: str, violations: list[str]) -> None:
        super().__init__("\n  ".join([f"{what} is not what the API answers:", *violations]))
        self.what = what
        self.violations = violations


class Judge:
    """The compiled schemas, and how much they were applied to.

    Attributes:
        seen: how often each kind of event or object passed: `event response.completed`, `object response`,
            `object list`, `object error`, and `item message` for each item of a finished response.
    """

    def __init__(self, *, of_recordings: bool = False) -> None:
        """`of_recordings` forgives fields that came to the API later."""
        self.seen: Counter[str] = Counter()
        self._events = compiled(EVENT_MODELS, of_recordings=of_recordings)
        self._objects = compiled(OBJECT_MODELS, of_recordings=of_recordings)

    def event(self, event: Json) -> None:
        """One event of a stream. Raises NotConformantError."""
        kind = str(event.get("type"))
        if kind not in self._events:
            raise NotConformantError(f"event {kind}", ["the API has no such event"])
        self._apply(f"event {kind}", self._events[kind], event)
        if kind in TERMINAL_TYPES:
            self._count_items(event["response"])

    def answer(self, status: int, body: Json) -> None:
        """A JSON answer, by its status and `object`. Raises likewise."""
        if status >= 400:
            if set(body) != {"error"}:
                raise NotConformantError(f"answer {status}", [f"its fields are {sorted(body)}, not only 'error'"])
            self._apply("object error", self._objects["error"], body["error"])
            return
        kind = str(body.get("object"))
        if kind == "response" and "deleted" in body:
            kind = "response.deleted"
        if kind not in ANSWERS:
            raise NotConformantError(f"answer {status}", [f"'object' is {kind!r}, not one of {', '.join(ANSWERS)}"])
        self._apply(f"object {kind}", self._objects[kind], body)
        if kind == "response":
            self._count_items(body)

    def _apply(self, what: str, schema: Schema, value: Json) -> None:
        violations = schema.violations(value)
        if violations:
            raise NotConformantError(what, violations)
        self.seen[what] += 1

    def _count_items(self, response: Json) -> None:
        self.seen.update(f"item {item['type']}" for item in response["output"])


@cache
def judge_of_answers() -> Judge:
    """The judge of everything that our own tests receive in this process."""
    return Judge()
