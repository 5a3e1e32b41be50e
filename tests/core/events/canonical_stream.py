"""What makes a stream of canonical events valid, whoever made it. For the tests of every layer."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Literal, get_args

from openai.types.responses import ResponseStreamEvent
from pydantic import BaseModel

from attache_core.events.event import TERMINAL_TYPES, Event
from attache_core.events.json_texts import same_json
from attache_core.json_codec import Json

_OPENAI_EVENTS: dict[str, type[BaseModel]] = {
    name: event
    for event in get_args(get_args(ResponseStreamEvent)[0])
    for name in get_args(event.model_fields["type"].annotation)
}
"""The `openai` package's model of each event type."""

_LIFECYCLE = TERMINAL_TYPES | {"response.created", "response.in_progress", "response.queued"}

_TEXT_ENDS = {
    "response.output_text": "text",
    "response.refusal": "refusal",
    "response.reasoning_text": "text",
    "response.reasoning_summary_text": "text",
    "response.function_call_arguments": "arguments",
    "response.custom_tool_call_input": "input",
    "response.mcp_call_arguments": "arguments",
}


Joins = Literal["strictly", "unless contradicted", "anyhow"]
"""How the deltas of a text are to join to the text of its end; see `check_stream`."""

_OWNERS = {
    "output_text": "message",
    "refusal": "message",
    "reasoning_text": "reasoning",
    "summary_text": "reasoning",
}
"""The type of item that a part stands in."""


def check_stream(events: Sequence[Event], *, joins: Joins = "strictly", openai_types: bool = True) -> None:
    """Fails unless `events` are one valid stream.

    Deltas join to the text of their end, unless the server contradicts itself: they were shown before its end was
    known. `"unless contradicted"` is for servers that do so at the end alone: where the end goes on from the deltas, or
    says the same, they join to it. `"anyhow"` is for servers that contradict even that.
    `openai_types=False` leaves out the check against the `openai` package: for items that nobody sends.
    """
    types = [event.type for event in events]
    assert types[:1] == ["response.created"], types
    assert types.count("response.created") == 1
    assert [kind for kind in types if kind in TERMINAL_TYPES] == types[-1:], types
    assert [event.data["sequence_number"] for event in events] == list(range(len(events)))
    assert [event.data["type"] for event in events] == types
    assert len({event.data["response"]["id"] for event in events if "response" in event.data}) == 1
    items = _Items(joins)
    for event in events:
        check_obfuscation(event)
        if openai_types:
            check_event_type(event)
        if event.type not in _LIFECYCLE:
            items.take(event)
    items.check_end(events[-1].data["response"])


def _contradicts(said: str, text: str) -> bool:
    """Whether a text could not be the end of these deltas, whatever had been added to them."""
    return not text.startswith(said) and not same_json(said, text)


def check_obfuscation(event: Event) -> None:
    """Fails when what is no delta is padded, or a delta to another length than OpenAI pads it to."""
    padding = event.data.get("obfuscation")
    if padding is not None:
        assert len(padding) < 16
        assert (len(event.data["delta"]) + len(padding)) % 16 == 0


def check_event_type(event: Event) -> None:
    """Fails unless the `openai` package knows the event, with all the fields that it requires."""
    data = copy.deepcopy(event.data)
    response = data.get("response")
    if response is not None:
        if response.get("error"):
            assert isinstance(response["error"]["code"], str)
            assert isinstance(response["error"]["message"], str)
            # The package lists a few codes; the API sends others too.
            response["error"]["code"] = "server_error"
        for item in response["output"]:
            _forgive(item)
    if "item" in data:
        _forgive(data["item"])
    _OPENAI_EVENTS[event.type].model_validate(data)


def _forgive(item: Json) -> None:
    """Where the API's own items are not what the package says: a search in progress has no action yet."""
    if item["type"] == "web_search_call":
        item.setdefault("action", {"type": "search", "query": ""})


class _Items:
    """Follows the items of one stream."""

    def __init__(self, joins: Joins) -> None:
        self._joins = joins
        self._open: dict[int, str] = {}
        self._types: dict[int, str] = {}
        self._done: dict[int, Json] = {}
        self._ids: set[str] = set()
        self._parts: dict[tuple[int, str, int], bool] = {}
        self._texts: dict[tuple[object, ...], str] = {}

    def take(self, event: Event) -> None:
        data, index = event.data, event.data["output_index"]
        if event.type == "response.output_item.added":
            assert index == len(self._open) + len(self._done), "output indexes are dense"
            assert data["item"]["id"] not in self._ids, "an item is added once"
            self._ids.add(data["item"]["id"])
            self._open[index] = data["item"]["id"]
            self._types[index] = data["item"]["type"]
        elif event.type == "response.output_item.done":
            assert self._open.pop(index) == data["item"]["id"], "an item is done once, under its own id"
            assert self._types[index] == data["item"]["type"], "an item is of one type for its whole life"
            assert not [place for place, is_open in self._parts.items() if place[0] == index and is_open]
            self._check_texts(index, data["item"])
            self._done[index] = data["item"]
        else:
            # Commands of the shell name their item by its output index alone.
            named = data.get("item_id", self._open.get(index))
            assert index in self._open, f"{event.type} of an item that is not open"
            assert self._open[index] == named, f"{event.type} of another item"
            self._take_part(event.type, data)

    def _take_part(self, kind: str, data: Json) -> None:
        family = "summary" if "summary_index" in data else "content"
        number = data.get(f"{family}_index")
        prefix, _, end = kind.rpartition(".")
        if number is not None:
            place = (data["output_index"], family, number)
            if prefix.endswith("_part") and end == "added":
                assert self._types[data["output_index"]] == _OWNERS[data["part"]["type"]], (
                    "a part is of its item's kind"
                )
                before = [other for other in self._parts if other[:2] == place[:2]]
                assert place not in self._parts
                assert number == len(before), "part indexes are dense"
                self._parts[place] = True
                return
            assert self._parts.get(place) is True, f"{kind} of a part that is not open"
            if prefix.endswith("_part"):
                self._parts[place] = False
        field = _TEXT_ENDS.get(prefix)
        if field is not None:
            text_place = (data["output_index"], prefix, number)
            if end == "delta":
                self._texts[text_place] = self._texts.get(text_place, "") + data["delta"]
            else:
                said = self._texts.pop(text_place, "")
                forgiven = self._joins == "anyhow" or (
                    self._joins == "unless contradicted" and _contradicts(said, data[field])
                )
                assert data[field] == said or forgiven, "deltas join to the text of the end"

    def _check_texts(self, index: int, item: Json) -> None:
        if item["type"] != "mcp_call":  # events of its life are nobody's to make up when a stream breaks
            assert not [place for place in self._texts if place[0] == index], "every text has an end"
        for family in ("content", "summary") if item["type"] in ("message", "reasoning") else ():
            streamed = [place for place in self._parts if place[:2] == (index, family)]
            assert len(streamed) == len(item.get(family) or []), "every part was streamed"

    def check_end(self, response: Json) -> None:
        assert self._open == {}, "every item is done"
        assert response["output"] == [self._done[index] for index in range(len(self._done))]
        assert response["status"] in ("completed", "incomplete", "failed")
        assert (response["completed_at"] is not None) == (response["status"] == "completed")
        assert (response["error"] is not None) == (response["status"] == "failed")
