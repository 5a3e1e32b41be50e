"""The JSON of an answer, or of one event of it, from whatever is below."""

from __future__ import annotations

from attache_core import json_codec
from attache_core.errors import UpstreamError
from attache_core.events.error_codes import BAD_ANSWER
from attache_core.json_codec import Json


def answer_object(data: bytes) -> Json:
    """`data` as a JSON object. Raises UpstreamError (502) when it is not one; its text is not repeated."""
    try:
        value = json_codec.decode(data)
    except ValueError as error:
        raise UpstreamError("The inference server sent what is not JSON.", code=BAD_ANSWER) from error
    if not isinstance(value, dict):
        raise UpstreamError("The inference server sent what is not a JSON object.", code=BAD_ANSWER)
    return value
