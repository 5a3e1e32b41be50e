"""What a stateless inference server refuses, and what the demo's model says when no script tells it.

The refusals are as strict as real servers are, and where real ones are silent about what only a stateful server could
answer (a tool that it would have to run, an item that it would have to look up, an output without its call) they are
stricter: a gateway that lets such a thing through must not look as if it worked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from attache_core.json_codec import Json
from attache_core.testing.model_chat_rules import as_create_request
from attache_core.testing.model_http import ReceivedRequest
from attache_core.testing.model_refusal import Refusal
from attache_core.testing.model_script import Reply, call, function_calls, text

INPUT_ITEM_TYPES = frozenset({"message", "reasoning", "function_call", "function_call_output"})
CONTENT_PART_TYPES = frozenset({"input_text", "input_image", "input_file", "output_text", "refusal", "reasoning_text"})
STATEFUL_FIELDS = ("previous_response_id", "conversation")
DEFAULT_CITY = "Paris"


def refusal_of(body: Json) -> Refusal | None:
    """What a stateless server cannot accept in a create request, or None."""
    for field in STATEFUL_FIELDS:
        if body.get(field) is not None:
            return Refusal(f"This server keeps no state: '{field}' cannot be answered.", field)
    if not isinstance(body.get("input"), str | list):
        return Refusal("'input' must be a string or array of objects", "input")
    return _refused_tool(body.get("tools") or []) or _refused_item(_items(body))


def default_answer(request: ReceivedRequest) -> Reply:
    """The demo's model: asks for the weather with a tool, quotes what a tool said, else counts what it was given."""
    body = request.body if "input" in request.body else as_create_request(request.body)
    items = _items(body)
    if outputs := _trailing_outputs(items):
        return text("The tool says: " + " ".join(outputs))
    asked = _last_user_text(items)
    weather = _weather_tool(body)
    if weather is not None and "weather" in asked.lower():
        return function_calls(call(weather["name"], {_first_parameter(weather): _city(asked)}))
    count = "1 input item" if len(items) == 1 else f"{len(items)} input items"
    return text(f"This is {body.get('model', 'the model')}. I was given {count}.")


def _items(body: Json) -> list[Json]:
    given = body["input"]
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


def _refused_tool(tools: Iterable[Json]) -> Refusal | None:
    for place, tool in enumerate(tools):
        if tool.get("type") != "function":
            return Refusal(f"Only function tools can be called here, not '{tool.get('type')}'.", f"tools[{place}].type")
    return None


def _refused_item(items: Iterable[Json]) -> Refusal | None:
    called: set[object] = set()
    for place, item in enumerate(items):
        kind = item.get("type", "message" if "role" in item else None)
        if kind not in INPUT_ITEM_TYPES:
            return Refusal(f"Cannot determine type of 'item': '{kind}'", f"input[{place}].type")
        if kind == "function_call":
            called.add(item.get("call_id"))
        if kind == "function_call_output" and item.get("call_id") not in called:
            return Refusal(f"No call message found for {item.get('call_id')}", f"input[{place}].call_id")
        if kind == "message" and (unknown := _unknown_part(item)):
            return Refusal(f"Unknown content part '{unknown}'", f"input[{place}].content")
    return None


def _unknown_part(message: Json) -> object:
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    return next((part.get("type") for part in parts if part.get("type") not in CONTENT_PART_TYPES), None)


def _trailing_outputs(items: list[Json]) -> list[str]:
    outputs: list[str] = []
    for item in reversed(items):
        if item.get("type") != "function_call_output":
            break
        outputs.append(_text_of(item.get("output")))
    return outputs[::-1]


def _last_user_text(items: list[Json]) -> str:
    last = items[-1] if items else {}
    return _text_of(last.get("content")) if last.get("role") == "user" else ""


def _text_of(content: object) -> str:
    if isinstance(content, list):
        return " ".join(str(part.get("text", "")) for part in content)
    return str(content or "")


def _weather_tool(body: Json) -> Json | None:
    if body.get("tool_choice") == "none":
        return None
    return next((tool for tool in body.get("tools") or [] if "get_weather" in str(tool.get("name"))), None)


def _first_parameter(tool: Json) -> str:
    schema: Json = tool.get("parameters") or {}
    return next(iter(schema.get("required") or schema.get("properties") or ()), "city")


def _city(asked: str) -> str:
    found = re.search(r"\b(?:in|for|of|at)\s+([A-Z][\w'-]*(?:\s+[A-Z][\w'-]*)*)", asked)
    return found.group(1) if found else DEFAULT_CITY
