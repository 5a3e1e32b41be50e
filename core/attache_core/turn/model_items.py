"""Input items as a plain inference server understands them: what reaches it, in what shape, under which ids.

Knows which item types such servers take and what their own request models demand; is unaware of any one server. Items
are told, never stored: the public record keeps what the client sent. Invariants: an item passes, or is told as a
message or as a function call and its output, or says nothing to a model and is left out (lists of MCP tools, approvals,
reasoning without a word), or is refused by name; order and both ends of every pair stay; what is told of an item
depends on nothing but the item and its place, so that a server's prompt cache stays warm.
Source: `ResponseInputItemParam` of the `openai` package, which vLLM checks requests with; llama.cpp's recordings.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from attache_core.events.json_texts import is_json_object
from attache_core.json_codec import Json, encode
from attache_core.tools.builtin import BUILTIN_TELLERS
from attache_core.tools.function_items import digest, untellable
from attache_core.tools.registry import ToolRegistry
from attache_core.types.ids import item_prefix
from attache_core.types.items import ORCHESTRATION_ITEMS, is_reference

PASSED = frozenset(
    {
        "message",
        "reasoning",
        "function_call",
        "function_call_output",
        "custom_tool_call",
        "custom_tool_call_output",
        "tool_search_call",
        "tool_search_output",
    }
)
"""The types that go on as what they are. Behind a tool loop the last four do not come: it tells them as functions."""


INVALID_JSON = "invalid_json"
"""The name under which a call's arguments are told that are no JSON object."""

_NO_TOOLS = ToolRegistry()
_ID_CHARS = 64
_OWN_IDS = {
    kind: re.compile(f"{item_prefix(kind)}_[A-Za-z0-9_-]{{0,{_ID_CHARS - len(item_prefix(kind)) - 1}}}")
    for kind in PASSED
}
"""What the ids of each type look like in the API's grammar."""


def model_items(items: Sequence[Json]) -> list[Json]:
    """The items of a turn, history first, as they go to an inference server.

    Ids of the API's grammar are kept; a foreign one is replaced by a digest of it, and a missing one that servers
    demand by a digest of its place. `call_id` is never touched.

    Raises:
        ClientError: 400, an item can be told to no plain server.
    """
    told: list[Json] = []
    for position, item in enumerate(items):
        kind = item.get("type") or ("item_reference" if is_reference(item) else "message")
        if kind in PASSED:
            passed = _shaped(item, kind)
            if passed is not None:
                told.append(_identified(passed, kind, position))
        elif kind == "agent_message":
            told.append(_agent_message(item))
        elif kind in BUILTIN_TELLERS:
            told += BUILTIN_TELLERS[kind](item, position, _NO_TOOLS)
        elif kind not in ORCHESTRATION_ITEMS:
            raise untellable(kind)
    return told


def _shaped(item: Json, kind: str) -> Json | None:
    """The item with what servers demand of it, itself where nothing is missing; None when it says nothing."""
    if kind == "message":
        return _message(item) if _is_output_message(item) else item
    if kind == "reasoning":
        return _reasoning(item)
    if kind == "function_call":
        return {**item, "arguments": _told_arguments(str(item.get("arguments") or ""))}
    return item


def _message(item: Json) -> Json:
    parts = item["content"]
    if not all(map(_is_whole, parts)):
        parts = [_output_part(part) for part in parts]
    elif item.get("status") and item.get("type"):
        return item
    return {**item, "type": "message", "status": item.get("status") or "completed", "content": parts}


def _agent_message(item: Json) -> Json:
    """To the agent that reads it, it is input. What a tool call said is as readable as the model wrote it here."""
    parts = [
        {"type": "input_text", "text": part["encrypted_content"]} if part["type"] == "encrypted_content" else part
        for part in item["content"]
    ]
    return {"type": "message", "role": "user", "content": parts}


def _is_output_message(item: Json) -> bool:
    """Whether it is a message in the shape of a response's output; a shorter one, of plain text, asks for no more."""
    return item.get("role") == "assistant" and isinstance(item.get("content"), list)


def _is_whole(part: Json) -> bool:
    return part.get("annotations") is not None and part.get("type") != "refusal"


def _output_part(part: Json) -> Json:
    if part.get("type") == "refusal":  # servers read `text` alone
        return {"type": "output_text", "text": part["refusal"], "annotations": []}
    return part if _is_whole(part) else {**part, "annotations": []}


def _reasoning(item: Json) -> Json | None:
    """Servers read `content`; where there is none, the summary is all that is known of it.

    What is encrypted is for the server that encrypted it, and goes on as it is.
    """
    summary = item.get("summary") or []
    content = item.get("content") or [{"type": "reasoning_text", "text": part["text"]} for part in summary]
    if item.get("encrypted_content"):
        return {**item, "summary": summary}
    return {**item, "summary": summary, "content": content} if content else None


def _told_arguments(text: str) -> str:
    """Servers parse what they are sent of earlier calls, and refuse a conversation for ever where it is no object."""
    if not text.strip():
        return "{}"
    return text if is_json_object(text) else encode({INVALID_JSON: text}).decode()


def _identified(item: Json, kind: str, position: int) -> Json:
    given = item.get("id")
    if given is not None and _OWN_IDS[kind].fullmatch(given):
        return item
    prefix = item_prefix(kind)
    if given is not None:
        return {**item, "id": digest(prefix, f"id {given}")}
    if kind == "reasoning" or (kind == "message" and _is_output_message(item)):
        return {**item, "id": digest(prefix, f"position {position}")}
    return {name: value for name, value in item.items() if name != "id"} if "id" in item else item
