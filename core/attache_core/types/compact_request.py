"""The body of `POST /v1/responses/compact`: whether it is a request that can be answered.

Shape only; what is not one of the endpoint's parameters is not looked at. Source: API reference, "Compact a response".
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import PlainValidator

from attache_core.errors import ClientError
from attache_core.json_codec import Json
from attache_core.types.extensions import Extensions
from attache_core.types.items import check_input
from attache_core.types.request import MAX_INPUT_ITEMS, check_item_count
from attache_core.types.shape import RequiredText, Shape, check, id_of

_OF_OTHERS = ("conversation", "stream")
"""Parameters of a create request that would be missed if they were ignored."""


class _CompactRequest(Shape):
    model: RequiredText
    input: Annotated[Any, PlainValidator(check_input)] | None = None
    previous_response_id: Annotated[Any, PlainValidator(id_of("resp"))] | None = None
    instructions: str | None = None


def validate_compact(body: Json, extensions: Extensions) -> None:
    """Look at a request for compaction; the body is not changed.

    Raises:
        ClientError: 400 with `param` and `code` for the first thing that is wrong.
    """
    for name in _OF_OTHERS:
        if body.get(name):
            message = f"Unsupported parameter: '{name}'. It is not one of this endpoint's."
            raise ClientError(message, code="unsupported_parameter", param=name)
    check_item_count(body.get("input"), MAX_INPUT_ITEMS)
    check(_CompactRequest, body, context=extensions)
    if not (body.get("input") or body.get("previous_response_id")):
        message = "One of 'input' or 'previous_response_id' must be provided."
        raise ClientError(message, code="missing_required_parameter")
