"""What a create request may say of compaction: `context_management`, and the items.

Shape only; is unaware of whether anything compacts. Source: API reference, "context_management" and "input".
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from attache_core.errors import ClientError
from attache_core.types.shape import Shape, array_of, named_by_type

COMPACTION = "compaction"
TRIGGER = "compaction_trigger"
"""The types of the item that stands for older items, and of the one that asks for it."""

MIN_THRESHOLD = 1000
"""The least that `compact_threshold` may be, in tokens; the API's own limit."""


class _Entry(Shape):
    compact_threshold: Annotated[int, Field(ge=MIN_THRESHOLD)] | None = None


check_context_management = array_of(named_by_type({COMPACTION: _Entry}), "an array of context management entries")
"""A check of `context_management`."""


def check_trigger(given: object) -> None:
    """Raises ClientError (400) where an item of `input` asks for compaction and is not the last one."""
    for place, item in enumerate(given[:-1] if isinstance(given, list) else ()):
        if item.get("type") == TRIGGER:
            message = f"Invalid 'input[{place}]': an item of type '{TRIGGER}' must be the last one of 'input'."
            raise ClientError(message, code="invalid_value", param=f"input[{place}]")
