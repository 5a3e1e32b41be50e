"""The JSON of an answer, or of one event of it, from whatever is below."""

from __future__ import annotations

from attache_core import json_codec
from attache_core.errors import UpstreamError
from attache_core.events.error_codes import BAD_ANSWER
from attache_core.json_codec import Json

_MAX_DELTA_BYTES = 1024
"""No response object, whose tools and metadata are the client's own, is so short."""


def answer_object(data: bytes) -> Json:
    """`data` as a JSON object, integers with all their digits; deltas, of which there are many, have none so long.

    Raises UpstreamError (502) when it is not one; its text is not repeated.
    """
    is_delta = len(data) < _MAX_DELTA_BYTES and b'.delta"' in data
    try:
        value = json_codec.decode(data) if is_delta else json_codec.decode_exactly(data)
    except ValueError as error:
        raise UpstreamError("The inference server sent what is not JSON.", code=BAD_ANSWER) from error
    if not isinstance(value, dict):
        raise UpstreamError("The inference server sent what is not a JSON object.", code=BAD_ANSWER)
    return value
