"""What the client sees: one continuous stream of public events over all rounds of a turn.

It alone gives ids and indexes to items, and numbers to events; its input cannot express any of them, but for an item
that brings an id of its own. Knows the strict grammar of `model_events`; is unaware of who said it, and of rounds:
the keys of their items must differ. Invariants:

- `response.created`, `response.in_progress`, …, one terminal event, and nothing after it.
- `sequence_number` runs from 0 without a gap: it is taken where an event is made, and what is made is returned.
- Each item is added once and done once; an event of an item that is not open is not shown.
- The terminal response's `output` is the done items, in the order of their indexes.

A failure is told by `response.failed` alone. OpenAI's own stream says an `error` event before it; the `openai` package
raises at that event, so its users would never see the failed response, with its id and what was said so far.

Source: API reference, "Streaming events", and OpenAI's own streams.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from attache_core.errors import SERVER_ERROR, AttacheError
from attache_core.events import items
from attache_core.events.delta_run import DeltaRun, delta_run
from attache_core.events.event import Event
from attache_core.events.model_events import (
    AnnotationAdded,
    Delta,
    DeltaKind,
    Finished,
    ItemAdded,
    ItemDone,
    ItemEvent,
    ModelEvent,
    PartAdded,
    PartDone,
    PartKind,
    Started,
)
from attache_core.events.obfuscation import Obfuscation
from attache_core.events.partial_item import PartialItem, PartialPart, closing_events, whole_item_events
from attache_core.json_codec import Json

FAILED: Final[Json] = {"code": SERVER_ERROR, "message": "The response failed."}
"""The error of a failed response of which nobody said why."""

_DELTA_TYPE: Final[dict[DeltaKind, str]] = {
    "text": "response.output_text.delta",
    "refusal": "response.refusal.delta",
    "reasoning_text": "response.reasoning_text.delta",
    "summary_text": "response.reasoning_summary_text.delta",
    "arguments": "response.function_call_arguments.delta",
    "input": "response.custom_tool_call_input.delta",
}

_TEXT_DONE_TYPE: Final[dict[PartKind, str]] = {
    "output_text": "response.output_text.done",
    "refusal": "response.refusal.done",
    "reasoning_text": "response.reasoning_text.done",
    "summary_text": "response.reasoning_summary_text.done",
}

_CALL_DONE_TYPE: Final[dict[DeltaKind, str]] = {
    "arguments": "response.function_call_arguments.done",
    "input": "response.custom_tool_call_input.done",
}

_PLACED_BY_INDEX: Final = "response.shell_call_command."
"""Events that name their item by its output index alone."""

_INDEX: Final[dict[items.Family, str]] = {"content": "content_index", "summary": "summary_index"}

_PART_TYPE: Final[dict[items.Family, str]] = {
    "content": "response.content_part",
    "summary": "response.reasoning_summary_part",
}


@dataclass(slots=True)
class _Shown:
    """An item that was added and is not done."""

    id: str
    output_index: int
    item: PartialItem


class Sequencer:
    """The events of one response. Every method returns the events to send, in order."""

    def __init__(
        self, response: Json, *, make_id: Callable[[str], str], obfuscation: Obfuscation | None = None
    ) -> None:
        """`response` is the public object in progress, with its id; `make_id` gives an id to an item of a type.

        With `obfuscation`, every event with a `delta` is padded.
        """
        self._response = response
        self._make_id = make_id
        self._obfuscation = obfuscation
        self._number = 0
        self._output: list[Json | None] = []
        """The items by output index; None while one is open."""
        self._open: dict[str, _Shown] = {}
        self._keys: set[str] = set()
        self._ids: set[str] = set()
        self._started = False
        self._ended = False

    @property
    def started(self) -> bool:
        """Whether `response.created` was given out."""
        return self._started

    @property
    def response(self) -> Json:
        """The response object as it is now; its `output` holds the items that are done."""
        return {**self._response, "output": [item for item in self._output if item is not None]}

    def start(self) -> list[Event]:
        """The two events that open the stream; empty from the second call on."""
        if self._started:
            return []
        self._started = True
        return [self._event(kind, response=self._response) for kind in ("response.created", "response.in_progress")]

    def progress(self) -> list[Event]:
        """A sign of life: `response.in_progress`, or the start where that is owed.

        It carries the response as it began, as OpenAI's does: with the output so far, a long wait would say again and
        again what may be megabytes.
        """
        if self._ended:
            return []
        return self.start() or [self._event("response.in_progress", response=self._response)]

    def emit(self, event: ModelEvent) -> list[Event]:
        """The public events of one strict event. `Finished` is of a round, not of the response: see `finish`."""
        if self._ended or isinstance(event, Finished):
            return []
        if isinstance(event, Delta):
            shown = self._open.get(event.key)
            return [] if shown is None else self._delta(shown, event)
        if isinstance(event, Started):
            return self._adopt(event)
        return self.start() + self._emit_item(event)

    def keep(self, event: ModelEvent) -> None:
        """What `emit` does to the response, for one whose events nobody reads: no event is made or numbered.

        Of an item that is open at the end nothing is kept but how it began.
        """
        if self._ended:
            return
        if isinstance(event, Started):
            self._adopt(event)
        elif isinstance(event, ItemAdded) and event.key not in self._keys:
            self._begin(event)
        elif isinstance(event, ItemDone):
            if event.key not in self._keys:
                self._begin(ItemAdded(event.key, event.item))
            if event.key in self._open:
                self._end(self._open.pop(event.key), event)

    def finish(self, finished: Finished, *, completed_at: int) -> list[Event]:
        """The ends of what is open, and the terminal event. `completed_at` is in Unix seconds.

        Items that are open are incomplete, whatever the status: a strict round leaves none.
        """
        if self._ended:
            return []
        events = self.start() + self._close_items()
        status = finished.status
        self._response = {
            **self.response,
            "status": status,
            "completed_at": completed_at if status == "completed" else None,
            "error": _error(finished.error) if status == "failed" else None,
            "incomplete_details": finished.incomplete_details if status == "incomplete" else None,
            "usage": finished.usage,
        }
        self._ended = True
        return [*events, self._event(f"response.{status}", response=self._response)]

    def fail(self, error: AttacheError) -> list[Event]:
        """The same for a turn that failed; without usage, for nobody knows it."""
        failed = Finished("failed", error={"code": error.code, "message": error.message})
        return self.finish(failed, completed_at=0)

    def _adopt(self, event: Started) -> list[Event]:
        """Start, with the model's name as the server knows it; one that has been shown stays."""
        model = event.response.get("model")
        if not self._started and isinstance(model, str) and model:
            self._response = {**self._response, "model": model}
        return self.start()

    def _emit_item(
        self, event: ItemAdded | PartAdded | AnnotationAdded | PartDone | ItemEvent | ItemDone
    ) -> list[Event]:
        if isinstance(event, ItemAdded):
            return [] if event.key in self._keys else [self._item_added(event)]
        shown = self._open.get(event.key)
        if shown is None:
            return self._whole_item(event) if isinstance(event, ItemDone) and event.key not in self._keys else []
        match event:
            case PartAdded():
                return self._part_added(shown, event)
            case AnnotationAdded():
                return self._annotation(shown, event)
            case PartDone():
                return self._part_done(shown, event)
            case ItemEvent():
                return [self._item_event(shown, event)]
            case ItemDone():
                return self._item_done(shown, event)

    def _whole_item(self, event: ItemDone) -> list[Event]:
        return [made for part in whole_item_events(event.key, event.item) for made in self.emit(part)]

    def _close_items(self) -> list[Event]:
        owed = [event for shown in self._open.values() for event in closing_events(shown.item, "incomplete")]
        return [made for event in owed for made in self.emit(event)]

    # Items

    def _item_added(self, event: ItemAdded) -> Event:
        shown = self._begin(event)
        return self._event("response.output_item.added", item=shown.item.start, output_index=shown.output_index)

    def _begin(self, event: ItemAdded) -> _Shown:
        given = event.item.get("id")
        usable = isinstance(given, str) and given and given not in self._ids
        item_id = str(given) if usable else self._make_id(event.item["type"])
        self._ids.add(item_id)
        shown = _Shown(item_id, len(self._output), PartialItem(event.key, _with_id(item_id, event.item)))
        self._output.append(None)
        self._keys.add(event.key)
        self._open[event.key] = shown
        return shown

    def _item_event(self, shown: _Shown, event: ItemEvent) -> Event:
        shown.item.take(event)
        data = event.data if event.type.startswith(_PLACED_BY_INDEX) else {**event.data, "item_id": shown.id}
        delta = data.get("delta")
        if self._obfuscation is not None and isinstance(delta, str):
            data = {**data, "obfuscation": self._obfuscation.padding(delta)}
        return self._event(event.type, **data, output_index=shown.output_index)

    def _item_done(self, shown: _Shown, event: ItemDone) -> list[Event]:
        events = [made for part in shown.item.open_parts() for made in self._end_part(shown, part, part.shape())]
        item = self._end(self._open.pop(event.key), event)
        text = items.CALL_TEXT.get(item["type"])
        if text is not None:
            said = {text: item[text], "item_id": shown.id, "output_index": shown.output_index}
            events.append(self._event(_CALL_DONE_TYPE[text], **said))
        return [*events, self._event("response.output_item.done", item=item, output_index=shown.output_index)]

    def _end(self, shown: _Shown, event: ItemDone) -> Json:
        item = _with_id(shown.id, event.item)
        self._output[shown.output_index] = item
        return item

    # Parts

    def _part_added(self, shown: _Shown, event: PartAdded) -> list[Event]:
        if event.part != len(shown.item.parts[items.family(event.kind)]):
            return []
        part = shown.item.add_part(event.kind)
        return [self._part_event(shown, part, "added", items.part_body(event.kind, "", [], []))]

    def _delta(self, shown: _Shown, event: Delta) -> list[Event]:
        kind, index = event.kind, event.part
        data: Json = {"type": _DELTA_TYPE[kind]}
        if index is None:
            shown.item.said.add(event.text)
        else:
            name: items.Family = "summary" if kind == "summary_text" else "content"
            part = shown.item.open_part(name, index)
            if part is None:
                return []
            part.said.add(event.text)
            data[_INDEX[name]] = index
        data["delta"] = event.text
        data["item_id"] = shown.id
        if kind == "text":
            data["logprobs"] = event.extra.get("logprobs", [])
        if event.pieces:
            return [self._run(shown, data, event.pieces)]
        if self._obfuscation is not None:
            data["obfuscation"] = self._obfuscation.padding(event.text)
        data["output_index"] = shown.output_index
        data["sequence_number"] = self._number
        self._number += 1
        return [Event(data["type"], data)]

    def _run(self, shown: _Shown, data: Json, pieces: Sequence[str]) -> DeltaRun:
        padding = None if self._obfuscation is None else self._obfuscation.padding
        paddings = None if padding is None else [padding(piece) for piece in pieces]
        if paddings is not None:
            data["obfuscation"] = paddings[-1]
        data["output_index"] = shown.output_index
        data["sequence_number"] = self._number
        numbers = range(self._number, self._number + len(pieces))
        self._number = numbers.stop
        return delta_run(data, pieces, numbers, paddings)

    def _annotation(self, shown: _Shown, event: AnnotationAdded) -> list[Event]:
        part = shown.item.open_part("content", event.part)
        if part is None:
            return []
        part.annotations.append(event.annotation)
        return [
            self._event(
                "response.output_text.annotation.added",
                annotation=event.annotation,
                annotation_index=len(part.annotations) - 1,
                content_index=part.index,
                item_id=shown.id,
                output_index=shown.output_index,
            )
        ]

    def _part_done(self, shown: _Shown, event: PartDone) -> list[Event]:
        part = shown.item.open_part(items.family(event.body["type"]), event.part)
        return [] if part is None else self._end_part(shown, part, event.body)

    def _end_part(self, shown: _Shown, part: PartialPart, body: Json) -> list[Event]:
        """The text's end, with its log probabilities where it is output text, and the part's."""
        part.close(body)
        data: Json = {_INDEX[items.family(part.kind)]: part.index, "item_id": shown.id}
        if part.kind == "output_text":
            data["logprobs"] = body.get("logprobs") or []
        data["output_index"] = shown.output_index
        field = items.text_field(part.kind)
        data[field] = body[field]
        return [self._event(_TEXT_DONE_TYPE[part.kind], **data), self._part_event(shown, part, "done", body)]

    def _part_event(self, shown: _Shown, part: PartialPart, end: str, body: Json) -> Event:
        name: items.Family = "summary" if part.kind == "summary_text" else "content"
        place = {_INDEX[name]: part.index, "item_id": shown.id, "output_index": shown.output_index}
        return self._event(f"{_PART_TYPE[name]}.{end}", **place, part=body)

    def _event(self, kind: str, **fields: object) -> Event:
        data: Json = {"type": kind, **fields, "sequence_number": self._number}
        self._number += 1
        return Event(kind, data)


def _with_id(item_id: str, item: Json) -> Json:
    return {**item, "id": item_id} if "id" in item else {"id": item_id, **item}


def _error(error: Json | None) -> Json:
    """`{code, message}` with both said: the code of a failed response is never null."""
    given = error or {}
    return {name: given.get(name) or default for name, default in FAILED.items()}
