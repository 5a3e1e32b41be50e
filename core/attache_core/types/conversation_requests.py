"""The requests that create and change conversations: from bytes to values, and whether they can be answered.

Knows their parameters; an item is looked at as an item of `input` is, and its id besides: the API wants the prefix of
its type. Is unaware of stores. Source: API reference, "Conversations"; wording as OpenAI's API answers.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any

from pydantic import PlainValidator, ValidationInfo

from attache_core.json_codec import Json
from attache_core.types.extensions import Extensions, extensions_of
from attache_core.types.ids import item_prefix
from attache_core.types.items import check_item, is_reference
from attache_core.types.parameters import check_metadata
from attache_core.types.request import parse_create
from attache_core.types.shape import Check, Shape, array_of, check
from attache_core.types.violation import quoted, refused

MAX_ITEMS_PER_CALL = 20
"""The API's own limit."""


def parse_new_conversation(body: bytes, extensions: Extensions) -> tuple[Json, list[Json]]:
    """Metadata and items of a conversation to be; no body at all asks for an empty one.

    Raises:
        ClientError: 400 with `param` and `code` for the first thing that is wrong.
    """
    given = parse_create(body) if body else {}
    check(_NewConversation, given, context=extensions)
    return given.get("metadata") or {}, given.get("items") or []


def parse_metadata(body: bytes) -> Json:
    """The metadata that a conversation is to have; null is none. Raises ClientError (400)."""
    given = parse_create(body)
    check(_Update, given)
    return given["metadata"] or {}


def parse_new_items(body: bytes, extensions: Extensions) -> list[Json]:
    """The items that are to be added to a conversation. Raises ClientError (400)."""
    given = parse_create(body)
    check(_NewItems, given, context=extensions)
    items: list[Json] = given["items"]
    return items


@lru_cache(maxsize=8)
def _items_check(extensions: Extensions) -> Check:
    def inspect(value: Any) -> Any:  # noqa: ANN401 - any JSON value
        check_item(value, extensions)
        return _check_prefix(value)

    return array_of(inspect, "an array of input items")


def _check_items(value: Any, info: ValidationInfo) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, list) and len(value) > MAX_ITEMS_PER_CALL:
        bound = f"Expected an array with maximum length {MAX_ITEMS_PER_CALL}"
        message = f"array too long. {bound}, but got an array with length {len(value)} instead."
        raise refused("array_above_max_length", f"Invalid '{{param}}': {message}")
    return _items_check(extensions_of(info))(value)


def _check_prefix(item: Json) -> Json:
    """An id that a client gives names the type; that of an item which is not of the API's types is anybody's."""
    item_id = item.get("id")
    prefix = item_prefix(item.get("type") or "message")
    if item_id is not None and not is_reference(item) and prefix != "item" and not item_id.startswith(prefix):
        expected = f"Expected an ID that begins with '{prefix}'."
        raise refused("invalid_value", f"Invalid '{{param}}': {quoted(item_id)}. {expected}", ("id",))
    return item


_Metadata = Annotated[Any, PlainValidator(check_metadata)]
_Items = Annotated[Any, PlainValidator(_check_items)]


class _NewConversation(Shape):
    items: _Items | None = None
    metadata: _Metadata | None = None


class _Update(Shape):
    metadata: _Metadata | None


class _NewItems(Shape):
    items: _Items
