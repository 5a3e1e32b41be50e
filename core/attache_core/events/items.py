"""The public shapes of output items and of their parts: as they begin, and as they end.

Knows the four types that are streamed in pieces (message, reasoning, function and custom tool calls); every other item
type is passed on as it is. Is unaware of ids, indexes and numbers. Source: API reference, "The response object", and
OpenAI's own streams, whose order of keys it keeps.
"""

from __future__ import annotations

from typing import Final, Literal

from attache_core import json_codec
from attache_core.events.model_events import DeltaKind, PartKind
from attache_core.json_codec import Json

Family = Literal["summary", "content"]
"""The list of an item that a part stands in."""

FAMILIES: Final[tuple[Family, ...]] = ("summary", "content")
"""In the order in which they are streamed."""

ITEM_OF_DELTA: Final[dict[DeltaKind, str]] = {
    "text": "message",
    "refusal": "message",
    "reasoning_text": "reasoning",
    "summary_text": "reasoning",
    "arguments": "function_call",
    "input": "custom_tool_call",
}
"""Which type of item a delta belongs to."""

PART_OF_DELTA: Final[dict[DeltaKind, PartKind]] = {
    "text": "output_text",
    "refusal": "refusal",
    "reasoning_text": "reasoning_text",
    "summary_text": "summary_text",
}
"""Which kind of part a delta belongs to."""

DELTA_OF_PART: Final[dict[PartKind, DeltaKind]] = {part: delta for delta, part in PART_OF_DELTA.items()}

PART_KINDS: Final[dict[str, PartKind]] = {kind: kind for kind in DELTA_OF_PART}

TEXT_ITEMS: Final = frozenset({"message", "reasoning"})
"""Items whose text is in parts."""

CALL_TEXT: Final[dict[str, DeltaKind]] = {"function_call": "arguments", "custom_tool_call": "input"}
"""Calls that are streamed, and the field that is."""

_SHAPED: Final[dict[str, frozenset[str]]] = {
    "message": frozenset({"id", "type", "status", "content", "role", "summary"}),
    "reasoning": frozenset({"id", "type", "status", "content", "summary"}),
    "function_call": frozenset({"id", "type", "status", "arguments", "call_id", "name", "summary"}),
    "custom_tool_call": frozenset({"id", "type", "status", "input", "call_id", "name", "summary"}),
}
"""The fields that are shaped here; the others are kept unless they say nothing."""


def family(kind: PartKind) -> Family:
    """The list of the item that a part stands in."""
    return "summary" if kind == "summary_text" else "content"


def part_kind(item_type: str, name: Family, body: Json) -> PartKind | None:
    """The kind of a part in that list of such an item; None for one that the API has not there."""
    kind = PART_KINDS.get(str(body.get("type")))
    belongs = kind is not None and family(kind) == name and ITEM_OF_DELTA[DELTA_OF_PART[kind]] == item_type
    return kind if belongs else None


def text_field(kind: PartKind) -> str:
    """The field of a part that holds its text."""
    return "refusal" if kind == "refusal" else "text"


def part_body(kind: PartKind, text: str, annotations: list[Json], logprobs: list[Json]) -> Json:
    """A part of a message, of reasoning or of its summary."""
    if kind == "output_text":
        whole = [_with_bytes(entry) for entry in logprobs]
        return {"type": kind, "annotations": annotations, "logprobs": whole, "text": text}
    return {"type": kind, text_field(kind): text}


def _with_bytes(logprob: Json) -> Json:
    """A token's log probability as it stands in a part, where the API requires `bytes`; in a delta it has none."""
    token = logprob.get("token")
    if "bytes" in logprob or not isinstance(token, str):
        return logprob
    top = [_with_bytes(entry) for entry in logprob.get("top_logprobs") or () if isinstance(entry, dict)]
    return {
        **logprob,
        "bytes": list(token.encode(errors="surrogatepass")),
        **({"top_logprobs": top} if "top_logprobs" in logprob else {}),
    }


def begun(item: Json) -> Json:
    """The item as it is announced: nothing in it yet, the status `in_progress` where its type has one."""
    kind = item.get("type")
    if kind == "message":
        head: Json = {"type": kind, "status": "in_progress", "content": [], "role": _text(item, "role") or "assistant"}
    elif kind == "reasoning":
        head = {"type": kind, "summary": []}
    elif kind in CALL_TEXT:
        head = _call(item, "in_progress", "")
    else:
        return {**item, "status": "in_progress"} if "status" in item else item
    return _with_id(item, {**head, **extras(item)})


def ended_text(item: Json, start: Json, status: str, content: list[Json], summary: list[Json]) -> Json:
    """A finished message or reasoning item. `item` is its last known form, `start` the one it was announced with."""
    if item["type"] == "message":
        shape: Json = {"type": "message", "status": status, "content": content, "role": start["role"]}
    else:
        shape = {"type": "reasoning", "summary": summary}
        if content:
            shape["content"] = content
        if status == "incomplete":
            shape["status"] = status
    return _with_id(start, {**shape, **extras(item)})


def ended_call(item: Json, start: Json, status: str, text: str) -> Json:
    """A finished function or custom tool call, with the `call_id` and `name` that it was announced with."""
    return _with_id(start, {**_call({**item, "call_id": start["call_id"]}, status, text), **extras(item)})


def extras(item: Json) -> Json:
    """Fields beyond those that are shaped here, such as `phase`, `namespace` and `encrypted_content`; none is empty."""
    shaped = _SHAPED[item["type"]]
    return {name: value for name, value in item.items() if name not in shaped and value not in (None, "")}


def cut_off_status(item_type: str) -> str:
    """The status of an item that did not come to its end; the statuses of some types do not include `incomplete`."""
    return "failed" if item_type in ("web_search_call", "image_generation_call") else "incomplete"


def final_status(item: Json) -> str:
    """The status of an item that the server called done."""
    return "incomplete" if item.get("status") == "incomplete" else "completed"


def as_text(value: object) -> str:
    """Arguments or input as text; a server that sends an object means its JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json_codec.encode(value).decode()


def _call(item: Json, status: str, text: str) -> Json:
    field = CALL_TEXT[item["type"]]
    name, call_id = _text(item, "name"), _text(item, "call_id")
    if field == "input":
        return {"type": item["type"], "status": status, "call_id": call_id, "input": text, "name": name}
    return {"type": item["type"], "status": status, "arguments": text, "call_id": call_id, "name": name}


def _with_id(item: Json, shape: Json) -> Json:
    return {"id": item["id"], **shape} if "id" in item else shape


def _text(item: Json, name: str) -> str:
    value = item.get(name)
    return value if isinstance(value, str) else ""
