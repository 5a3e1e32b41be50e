"""One page of a list of items: what a client asks for, and how it is answered.

Knows the query parameters and the list object of the API's lists of items; is unaware of where items come from.
Source: API reference, "List input items" and "List items".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator

from attache_core.errors import ClientError
from attache_core.json_codec import Json
from attache_core.types.item_resource import item_resource
from attache_core.types.parameters import check_include
from attache_core.types.query import query_values
from attache_core.types.shape import Shape, check, one_of
from attache_core.types.violation import quoted

DEFAULT_PAGE_ITEMS = 20
MAX_PAGE_ITEMS = 100
"""The API's own limits."""


Order = Literal["asc", "desc"]
"""Of a list: `desc` begins with the latest item."""


@dataclass(frozen=True, slots=True)
class Page:
    """Which items of a list are asked for.

    Attributes:
        limit: how many at most.
        after: the id of the item after which the page begins; None for the first page.
        order: `desc` begins with the latest item.
    """

    limit: int = DEFAULT_PAGE_ITEMS
    after: str | None = None
    order: Order = "desc"


@dataclass(frozen=True, slots=True)
class ItemPage:
    """The items of a page, in its order, and whether there are more after them."""

    items: Sequence[Json]
    has_more: bool


class _PageQuery(Shape):
    after: str | None = None
    limit: Annotated[int, Field(ge=1, le=MAX_PAGE_ITEMS)] = DEFAULT_PAGE_ITEMS
    order: Annotated[str, one_of("asc", "desc")] = "desc"
    include: Annotated[Any, PlainValidator(check_include)] | None = None


def parse_page(query: str) -> Page:
    """The page that the text after the question mark asks for; `include` is checked, and all it could add is there.

    Raises:
        ClientError: 400 with `param` and `code` for the first thing that is wrong.
    """
    asked = query_values(query, texts=("after", "order"))
    check(_PageQuery, asked)
    return Page(**{name: asked[name] for name in ("limit", "after", "order") if name in asked})


def page_of(items: Sequence[Json], page: Page) -> ItemPage:
    """The page of a list that is known whole, in ascending order. Raises ClientError (404): `after` is not in it."""
    ordered = list(items) if page.order == "asc" else list(reversed(items))
    if page.after is not None:
        places = [place for place, item in enumerate(ordered) if item.get("id") == page.after]
        if not places:
            raise cursor_not_found(page.after)
        ordered = ordered[places[-1] + 1 :]
    return ItemPage(ordered[: page.limit], len(ordered) > page.limit)


def cursor_not_found(item_id: str) -> ClientError:
    """What is said of an `after` that names no item of the list."""
    return ClientError(f"No item found with id {quoted(item_id)}", http_status=HTTPStatus.NOT_FOUND, param="after")


def list_object(page: ItemPage) -> Json:
    """The API's list object. The ids of an empty one are null."""
    data = [item_resource(item) for item in page.items]
    return {
        "object": "list",
        "data": data,
        "first_id": data[0]["id"] if data else None,
        "last_id": data[-1]["id"] if data else None,
        "has_more": page.has_more,
    }
