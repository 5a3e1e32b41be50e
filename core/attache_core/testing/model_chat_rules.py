"""What a server of the Chat Completions API refuses, and a chat request as the create request that it stands for.

As strict as the strictest: what only the Responses API has is refused, roles and parts are those that every server
knows, content that is all text is a string, the system speaks once in front, the outputs of calls follow their calls at
once, and arguments are JSON objects. A gateway that translates badly must not look as if it worked. Source: API
reference, "Create chat completion"; the messages are ours.
"""

from __future__ import annotations

from collections.abc import Iterable

from attache_core.events.json_texts import is_json_object
from attache_core.json_codec import Json
from attache_core.testing.model_refusal import Refusal
from attache_core.tools.names import is_valid_name

RESPONSES_FIELDS = ("input", "instructions", "previous_response_id", "conversation", "text", "reasoning", "include",
                    "max_output_tokens", "truncation", "max_tool_calls")  # fmt: skip
ROLES = ("system", "user", "assistant", "tool")
PART_TYPES = ("text", "image_url", "file")


def chat_refusal_of(body: Json) -> Refusal | None:
    """What a chat server cannot accept in a request, or None."""
    for field in RESPONSES_FIELDS:
        if field in body:
            return Refusal(f"Unrecognized request argument supplied: {field}", field)
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return Refusal("'messages' must be a non-empty array", "messages")
    return _refused_tools(body) or _refused_message(messages)


def as_create_request(body: Json) -> Json:
    """The model, the tools and the conversation of a chat request, as far as the demo's model reads them."""
    tools = [{"type": "function", **tool["function"]} for tool in body.get("tools") or ()]
    return {**body, "tools": tools, "input": [_as_item(message) for message in body["messages"]]}


def _as_item(message: Json) -> Json:
    if message["role"] == "tool":
        return {"type": "function_call_output", "call_id": message["tool_call_id"], "output": message["content"]}
    return {"type": "message", "role": message["role"], "content": message["content"]}


def _refused_tools(body: Json) -> Refusal | None:
    tools = body.get("tools")
    if not tools:
        given = next((name for name in ("tool_choice", "parallel_tool_calls") if name in body), None)
        return Refusal(f"'{given}' is only allowed when 'tools' are specified", given) if given else None
    for place, tool in enumerate(tools):
        if tool.get("type") != "function" or not is_valid_name(tool.get("function", {}).get("name") or ""):
            return Refusal("A tool needs the type 'function' and a function with a name", f"tools[{place}]")
    return None


def _refused_message(messages: list[Json]) -> Refusal | None:
    owed: set[object] = set()
    for place, message in enumerate(messages):
        role = message.get("role")
        if role not in ROLES:
            return Refusal(f"Unexpected role '{role}'", f"messages[{place}].role")
        if [role, messages[place - 1].get("role")] == ["system", "system"] and place == 1:
            return Refusal("System message must be at the beginning", "messages[1].role")
        if role == "tool":
            if message.get("tool_call_id") not in owed:
                return Refusal("A tool message must follow the call that it answers", f"messages[{place}]")
            owed.discard(message["tool_call_id"])
        elif owed:
            return Refusal("A message with tool calls must be followed by the outputs of all", f"messages[{place}]")
        if refused := _refused_content(message, place) or _refused_calls(message, place):
            return refused
        owed |= {call["id"] for call in message.get("tool_calls") or ()}
    return None


def _refused_content(message: Json, place: int) -> Refusal | None:
    content = message.get("content")
    if isinstance(content, str) or (content is None and message.get("tool_calls")):
        return None
    if not isinstance(content, list) or _unknown(content) or all(part["type"] == "text" for part in content):
        return Refusal("Invalid content", f"messages[{place}].content")
    return None


def _refused_calls(message: Json, place: int) -> Refusal | None:
    for call in message.get("tool_calls") or ():
        if not is_json_object(str(call["function"].get("arguments", "{}"))):
            return Refusal("The arguments of a call are no JSON object", f"messages[{place}].tool_calls")
    return None


def _unknown(parts: Iterable[Json]) -> bool:
    return any(part.get("type") not in PART_TYPES for part in parts)
