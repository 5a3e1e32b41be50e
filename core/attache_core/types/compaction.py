"""What a client may ask of compaction: `context_management`, a trigger item, and `POST /v1/responses/compact`.

Shape only; is unaware of whether anything compacts. Source: API reference, "Compact a response" and
"context_management".
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, PlainValidator

from attache_core.errors import ClientError
from attache_core.json_codec import Json
from attache_core.types.extensions import Extensions
from attache_core.types.items import check_input
from attache_core.types.shape import RequiredText, Shape, array_of, check, id_of, named_by_type

COMPACTION = "compaction"
TRIGGER = "compaction_trigger"
"""The types of the item that stands for older items, and of the one that asks for it."""

MIN_THRESHOLD = 1000
"""The API's own limit."""


class _Entry(Shape):
    compact_threshold: Annotated[int, Field(ge=MIN_THRESHOLD)] | None = None


check_context_management = array_of(named_by_type({COMPACTION: _Entry}), "an array of context management entries")
"""A check of `context_management`."""


class _CompactRequest(Shape):
    model: RequiredText
    input: Annotated[Any, PlainValidator(check_input)] | None = None
    previous_response_id: Annotated[Any, PlainValidator(id_of("resp"))] | None = None
    instructions: str | None = None


def check_trigger(items: object) -> None:
    """Raises ClientError (400) where an item asks for compaction and is not the last one of the input."""
    if not isinstance(items, list):
        return
    for place, item in enumerate(items[:-1]):
        if isinstance(item, dict) and item.get("type") == TRIGGER:
            message = f"Invalid 'input[{place}]': an item of type '{TRIGGER}' must be the last one of 'input'."
            raise ClientError(message, code="invalid_value", param=f"input[{place}]")


def validate_compact(body: Json, extensions: Extensions) -> None:
    """Look at the body of `POST /v1/responses/compact`; what is not one of its parameters is not looked at.

    Raises:
        ClientError: 400 with `param` and `code` for the first thing that is wrong.
    """
    for name in ("conversation", "stream"):
        if body.get(name):
            message = f"Unsupported parameter: '{name}'. It is not one of this endpoint's."
            raise ClientError(message, code="unsupported_parameter", param=name)
    check(_CompactRequest, body, context=extensions)
    if not (body.get("input") or body.get("previous_response_id")):
        message = "One of 'input' or 'previous_response_id' must be provided."
        raise ClientError(message, code="missing_required_parameter")
