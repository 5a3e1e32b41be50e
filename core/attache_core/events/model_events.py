"""What the model says, in a closed vocabulary: the language between dialects, accumulator, loop and sequencer.

A dialect translates what one inference server sends into these, tolerantly: parts may be missing, ends may be missing,
a delta may come before its item. The accumulator turns that into the same vocabulary with a strict grammar:

    Started? (item)* Finished
    item = ItemAdded (part | ItemEvent)* ItemDone          one item open at a time, unless the server interleaves them
    part = PartAdded Delta* PartDone                        for messages and reasoning
         | Delta*                                           arguments of a function call, input of a custom tool call

Deltas of a part or of arguments joined equal the text of its end. `key` is the identity of an item within one round
and is never shown to a client; ids and indexes are the sequencer's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from attache_core.json_codec import Json

DeltaKind = Literal["text", "refusal", "reasoning_text", "summary_text", "arguments", "input"]
PartKind = Literal["output_text", "refusal", "reasoning_text", "summary_text"]
Status = Literal["completed", "incomplete", "failed"]


@dataclass(frozen=True, slots=True)
class Started:
    """The server began to answer; `response` is what it said of it, in its own words."""

    response: Json


@dataclass(frozen=True, slots=True)
class ItemAdded:
    """An item began. `item` has its `type` and what is known at once (`role`, `name`, `call_id`)."""

    key: str
    item: Json


@dataclass(frozen=True, slots=True)
class PartAdded:
    """A part of a message's or reasoning item's content (or summary) began, empty."""

    key: str
    part: int
    kind: PartKind


@dataclass(frozen=True, slots=True)
class Delta:
    """More text of a part (`part` is its index) or of arguments or input (`part` is None)."""

    key: str
    part: int | None
    kind: DeltaKind
    text: str
    extra: Json = field(default_factory=dict)
    """Fields that go along unchanged, such as `logprobs`."""
    pieces: Sequence[str] = ()
    """How the text was cut, where this stands for several deltas; none of them is empty, nor has `extra`."""

    def each(self) -> Sequence[Delta]:
        """The deltas that this one stands for."""
        if not self.pieces:
            return (self,)
        return [Delta(self.key, self.part, self.kind, piece) for piece in self.pieces]


@dataclass(frozen=True, slots=True)
class AnnotationAdded:
    """A citation was attached to a text part."""

    key: str
    part: int
    annotation: Json


@dataclass(frozen=True, slots=True)
class PartDone:
    """A part is complete: `body` is `{"type": kind, "text" | "refusal": …, "annotations": […], …}`."""

    key: str
    part: int
    body: Json


@dataclass(frozen=True, slots=True)
class ItemEvent:
    """An event of an item's life with a type of its own, such as `response.mcp_call.in_progress`."""

    key: str
    type: str
    data: Json = field(default_factory=dict)
    """Its fields besides `type`, `item_id`, `output_index` and `sequence_number`."""


@dataclass(frozen=True, slots=True)
class ItemDone:
    """An item is complete: `item` is its final public shape, without an id of our making."""

    key: str
    item: Json


@dataclass(frozen=True, slots=True)
class Finished:
    """How the round ended. Only a server's explicit completion is `completed`."""

    status: Status
    usage: Json | None = None
    error: Json | None = None
    """`{code, message}` when failed."""
    incomplete_details: Json | None = None


ModelEvent = Started | ItemAdded | PartAdded | Delta | AnnotationAdded | PartDone | ItemEvent | ItemDone | Finished
