"""`conversation` of a create request: which conversation a turn belongs to, in either of its two forms.

Knows `"conv_…"` and `{"id": "conv_…"}`; is unaware of which conversations exist. Source: API reference, "conversation".
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import PlainValidator

from attache_core.json_codec import Json
from attache_core.types.shape import Shape, id_of
from attache_core.types.violation import wrong_type

_check_id = id_of("conv")


class _ById(Shape):
    id: Annotated[Any, PlainValidator(_check_id)]


def check_conversation(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Look at `conversation`: an id of ours, as it is or in an object; see `conversation_id` for reading it."""
    if isinstance(value, dict):
        return _ById.model_validate(value)
    if not isinstance(value, str):
        raise wrong_type("one of an object or string", value)
    return _check_id(value)


def conversation_id(body: Json) -> str | None:
    """The id of the conversation that a valid create request names, or None."""
    given = body.get("conversation")
    return given["id"] if isinstance(given, dict) else given
