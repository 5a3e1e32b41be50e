"""An inference server that answers at once with whatever bytes a test has for it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field

from attache_core.json_codec import Json, encode
from attache_core.types.turn import TurnRequest

STREAM = {"content-type": "text/event-stream"}
JSON = {"content-type": "application/json"}


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer."""

    chunks: Sequence[bytes]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: JSON)

    @property
    def body(self) -> AsyncIterator[bytes]:
        async def arriving() -> AsyncIterator[bytes]:
            for chunk in self.chunks:
                yield chunk

        return arriving()


def streamed(payloads: Sequence[object]) -> Answer:
    """These payloads as server-sent events, one chunk each."""
    return Answer([b"data: " + encode(payload) + b"\n\n" for payload in payloads], headers=STREAM)


def plain(body: object) -> Answer:
    """This JSON as one body."""
    return Answer([encode(body)])


class FakeModel:
    """A `Send` that gives its answers in order, the last one again and again, and remembers what it was asked."""

    def __init__(self, *answers: Answer) -> None:
        self.asked: list[Json] = []
        self._answers = list(answers)

    async def __call__(self, turn: TurnRequest) -> Answer:
        encode(turn.body)
        self.asked.append(turn.body)
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
