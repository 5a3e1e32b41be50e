"""A stored item as the API shows it where items are read back: with the fields that a client may leave out.

Is unaware of stores. Items are stored as they came; only what is shown is filled in. Source: the `ItemResource` objects
of the API reference, and OpenAI's answers.
"""

from __future__ import annotations

from attache_core.json_codec import Json

_WITH_STATUS = frozenset(
    {"message", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output"}
)
"""Clients send these without `status`; they are shown with one."""


def item_resource(item: Json) -> Json:
    """The item with `type`, `status` and content parts where it has text alone; an item of ours is as it was."""
    kind = item.get("type") or "message"
    shown = {**item, "type": kind}
    if kind in _WITH_STATUS and shown.get("status") is None:
        shown["status"] = "completed"
    if kind == "message" and isinstance(item.get("content"), str):
        shown["content"] = [_text_part(item.get("role"), item["content"])]
    return shown


def _text_part(role: object, text: str) -> Json:
    if role == "assistant":
        return {"type": "output_text", "annotations": [], "logprobs": [], "text": text}
    return {"type": "input_text", "text": text}
