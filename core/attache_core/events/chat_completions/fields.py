"""The fields of an answer, by kind: null says nothing, and another kind than the API's makes it no answer."""

from __future__ import annotations

from attache_core.errors import UpstreamError
from attache_core.events.error_codes import BAD_ANSWER


def not_an_answer() -> UpstreamError:
    """502; what the server sent is not repeated."""
    return UpstreamError(
        "The inference server sent what is not an answer of the Chat Completions API.", code=BAD_ANSWER
    )


def text_of(value: object) -> str:
    """`value` as text; null is none. Raises UpstreamError for anything else."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise not_an_answer()
    return value


def object_of(value: object) -> dict[str, object]:
    """`value` as an object; null is an empty one. Raises UpstreamError for anything else."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise not_an_answer()
    return value


def list_of(value: object) -> list[object]:
    """`value` as an array; null is an empty one. Raises UpstreamError for anything else."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise not_an_answer()
    return value
