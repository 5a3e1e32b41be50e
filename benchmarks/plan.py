"""What a run measures, and how long: the cells of the tables and the sizes of all other measurements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from attache_core.json_codec import encode
from benchmarks.targets import Target

Kind = Literal["json", "sse"]

JSON_MODEL = "bench-8"
SSE_MODEL = "bench-200"
MIN_EVENTS: dict[Kind, int] = {"json": 0, "sse": 200}
MODELS: dict[Kind, str] = {"json": JSON_MODEL, "sse": SSE_MODEL}
QUESTION = "How is the weather in Paris, and what should I wear when I go out tonight?"


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured.

    Attributes:
        rounds: every target is started and measured so many times, in turn; the table shows medians.
        duration_s: of one cell in one round.
        warmup_s: before each cell at full speed.
        connections: of the cells at full speed.
        paced_streams: how many streams at a model's speed are open at once.
        paced_s: how long they are measured.
        memory_streams: how many streams are opened to see what one takes of memory.
        call_repetitions: how often a turn with an MCP call and its parts are measured, each in turn.
        depths: of the turns that continue a chain of stored turns, which is as long as the last of them.
        conversation_items: how long the conversations of the measured turns are.
        history_repetitions: how often a turn after each history is measured.
        only: leave out everything but turns with an MCP call, or turns after histories.
    """

    rounds: int
    duration_s: float
    warmup_s: float
    connections: tuple[int, ...]
    paced_streams: tuple[int, ...] = (64, 256)
    paced_s: float = 3.0
    memory_streams: int = 64
    call_repetitions: int = 100
    depths: tuple[int, ...] = (1, 10, 50, 200)
    conversation_items: tuple[int, ...] = (10, 100, 1000)
    history_repetitions: int = 30
    only: Literal["calls", "histories"] | None = None


FULL = Plan(rounds=3, duration_s=1.0, warmup_s=0.2, connections=(1, 16, 64))
QUICK = Plan(
    rounds=1,
    duration_s=0.3,
    warmup_s=0.05,
    connections=(1, 16, 64),
    paced_streams=(64,),
    paced_s=1.5,
    call_repetitions=15,
    depths=(1, 200),
    conversation_items=(10, 1000),
    history_repetitions=4,
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One load: what is asked, whether it is to be stored, over how many connections."""

    kind: Kind
    store: bool
    connections: int

    @property
    def body(self) -> bytes:
        """The create request."""
        stream = self.kind != "json"
        return encode({"model": MODELS[self.kind], "input": QUESTION, "stream": stream, "store": self.store})

    @property
    def min_events(self) -> int:
        """Fewer events in a response mean that something was lost."""
        return MIN_EVENTS[self.kind]


def cells_of(plan: Plan, target: Target) -> Iterator[Cell]:
    """The cells of one target: stored turns only where something can be stored."""
    kinds: tuple[Kind, ...] = ("json", "sse")
    for store in (False, True) if target.keeps_state else (False,):
        for kind in kinds:
            for connections in plan.connections:
                yield Cell(kind, store, connections)
