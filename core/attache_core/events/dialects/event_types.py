"""The event types of the Responses API as tables: what each is about, and where its text and its part number stand.

Source: API reference, "Streaming events"; where a server adds a type of its own, the table says so.
"""

from __future__ import annotations

from typing import Final

from attache_core.events.model_events import DeltaKind, Status

DELTAS: Final[dict[str, tuple[DeltaKind, str | None]]] = {
    "response.output_text.delta": ("text", "content_index"),
    "response.refusal.delta": ("refusal", "content_index"),
    "response.reasoning_text.delta": ("reasoning_text", "content_index"),
    "response.reasoning_summary_text.delta": ("summary_text", "summary_index"),
    "response.function_call_arguments.delta": ("arguments", None),
    "response.custom_tool_call_input.delta": ("input", None),
}
"""Event type to kind of text, and the field that holds the part's number."""

TEXT_DONES: Final[dict[str, tuple[DeltaKind, str | None, str]]] = {
    "response.output_text.done": ("text", "content_index", "text"),
    "response.refusal.done": ("refusal", "content_index", "refusal"),
    "response.reasoning_text.done": ("reasoning_text", "content_index", "text"),
    "response.reasoning_summary_text.done": ("summary_text", "summary_index", "text"),
    "response.function_call_arguments.done": ("arguments", None, "arguments"),
    "response.custom_tool_call_input.done": ("input", None, "input"),
}
"""The same for the end of a text, and the field that holds it."""

PARTS: Final[dict[str, str]] = {
    "response.content_part.": "content_index",
    "response.reasoning_part.": "content_index",
    "response.reasoning_summary_part.": "summary_index",
}
"""Prefix of a part's `added` and `done`; `reasoning_part` is vLLM's own."""

TERMINAL: Final[dict[str, Status]] = {
    "response.completed": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
    "response.cancelled": "failed",
}

SEVERITY: Final[dict[Status, int]] = {"completed": 0, "incomplete": 1, "failed": 2}
"""How bad an end is: where a server says two things of one, the worse counts."""

ITEM_EVENTS: Final = frozenset(
    f"response.{family}.{event}"
    for family, events in {
        "web_search_call": "in_progress searching completed",
        "file_search_call": "in_progress searching completed",
        "code_interpreter_call": "in_progress interpreting completed",
        "code_interpreter_call_code": "delta done",
        "image_generation_call": "in_progress generating partial_image completed",
        "mcp_call": "in_progress completed failed",
        "mcp_call_arguments": "delta done",
        "mcp_list_tools": "in_progress completed failed",
    }.items()
    for event in events.split()
)
"""Events of an item's life that are passed on as they are; closed, for clients fail on unknown types."""

STRAY_FIELDS: Final = frozenset({"id", "item_id", "output_index", "sequence_number"})
"""Fields that an item of a server may carry and that are not the item's, its id included."""

ENVELOPE: Final = frozenset({"type", "item_id", "output_index", "sequence_number", "obfuscation"})
"""Fields of an event that are not an item's own: the sequencer gives them anew."""
