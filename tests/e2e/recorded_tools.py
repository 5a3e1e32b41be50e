"""A recording with tools as a play: what the model must say for it, and which of its items and events are compared.

Knows the layout of the recordings and the items of the API's tools; is unaware of gateways. A model that knows
functions only makes the recorded calls by the names under which it is told of them. What a model says by itself, its
reasoning, is left out on both sides: `tests/core/turn/test_openai_sequences.py` compares that.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attache_core.json_codec import Json, decode, encode
from attache_core.testing.model_script import FunctionCall, Message, Reply, call, says
from core.events.recordings import Recorded, recorded

GATEWAY_CALLS = ("mcp_call", "web_search_call", "code_interpreter_call")
"""Calls after which the model is asked again."""

LITERALS = ("type", "status", "role", "name", "namespace", "server_label", "execution", "phase")
"""Fields that are compared by value. Of all others the type of the value is compared."""

OPAQUE = ("input_schema", "parameters", "output_schema", "arguments")
"""Fields that hold whatever a tool's author wrote."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a recording.

    Attributes:
        request: the body that the client sent.
        output: the recorded items that are compared, in their order.
        events: for each of them the types of its events; None where the answer was not streamed.
        response: the recorded final response.
    """

    request: Json
    output: Sequence[Json]
    events: Sequence[Sequence[str]] | None
    response: Json

    @property
    def script(self) -> list[Reply]:
        """What the model says: a round ends with a call of the gateway's, or with the turn."""
        rounds: list[list[FunctionCall | Message]] = [[]]
        for item in self.output:
            if item["type"] == "mcp_list_tools":
                continue
            rounds[-1].append(_said(item))
            if item["type"] in GATEWAY_CALLS:
                rounds.append([])
        return [says(*said) for said in rounds if said]


def recorded_turns(path: str, replaced: Mapping[str, str]) -> list[Turn]:
    """The turns of one file, with addresses replaced by those of servers that are there."""
    return [_turn(answer, replaced) for answer in recorded(path)]


def _turn(answer: Recorded, replaced: Mapping[str, str]) -> Turn:
    payloads = [_replaced(payload, replaced) for payload in answer.payloads]
    response = payloads[-1]["response"] if payloads else _replaced(answer.body or {}, replaced)
    events = events_by_item(payloads) if payloads else None
    return Turn(_replaced(answer.request, replaced), compared(response["output"]), events, response)


def compared(output: Sequence[Json]) -> list[Json]:
    """The items of a response but what the model thought."""
    return [item for item in output if item["type"] != "reasoning"]


def _said(item: Json) -> FunctionCall | Message:
    match item["type"]:
        case "message":
            return Message(tuple(part["text"] for part in item["content"]))
        case "function_call":
            return call(
                f"{item['namespace']}__{item['name']}" if "namespace" in item else item["name"], item["arguments"]
            )
        case "custom_tool_call":
            return call(item["name"], {"input": item["input"]})
        case "tool_search_call":
            return call("tool_search", item["arguments"])
        case "shell_call":
            return call("shell", item["action"])
        case "mcp_call":
            return call(item["name"], item["arguments"])
        case "web_search_call":
            action = {name: value for name, value in item["action"].items() if name not in ("query", "sources")}
            queries = (
                {"queries": action.get("queries") or [item["action"]["query"]]} if "query" in item["action"] else {}
            )
            return call("web_search", {"action": {**action, **queries}})
        case "code_interpreter_call":
            return call("echo", {"text": item["code"]})
    raise AssertionError(f"no model says {item['type']}")


def events_by_item(payloads: Sequence[Json]) -> list[list[str]]:
    """The types of each compared item's events, runs of one type as one."""
    kinds = {payload["output_index"]: payload["item"]["type"] for payload in payloads if "item" in payload}
    by_item: dict[int, list[str]] = {index: [] for index, kind in sorted(kinds.items()) if kind != "reasoning"}
    for payload in payloads:
        if payload.get("output_index") in by_item:
            by_item[payload["output_index"]].append(payload["type"])
    return [[kind for kind, _run in itertools.groupby(types)] for types in by_item.values()]


def shape(value: Any, place: str = "") -> dict[str, Any]:
    """The places in an item, such as `action.sources[].url`, and the type of what stands there, or its value."""
    if place.rpartition(".")[2] in OPAQUE:
        return {place: type(value).__name__}
    if isinstance(value, dict):
        inner = [shape(entry, f"{place}.{name}" if place else name) for name, entry in value.items()]
        return {name: kind for each in inner for name, kind in each.items()} or {place: "{}"}
    if isinstance(value, list):
        return {place: "list", **{name: kind for entry in value for name, kind in shape(entry, f"{place}[]").items()}}
    return {place: value if place.rpartition(".")[2] in LITERALS else type(value).__name__}


def cited(turns: Sequence[Turn]) -> Iterator[Json]:
    """The pages that the recorded answers cite, and those that they name as sources."""
    items = [item for turn in turns for item in turn.output]
    parts = [part for item in items for part in item.get("content") or ()]
    for note in (note for part in parts for note in part.get("annotations") or ()):
        yield {"url": note["url"], "title": note["title"], "description": "Cited."}
    for source in (source for item in items for source in item.get("action", {}).get("sources") or ()):
        yield {"url": source["url"], "title": "A page", "description": "Found."}


def _replaced(value: Json, replaced: Mapping[str, str]) -> Json:
    text = encode(value).decode()
    for old, new in replaced.items():
        text = text.replace(old, new)
    replaced_in: Json = decode(text)
    return replaced_in
