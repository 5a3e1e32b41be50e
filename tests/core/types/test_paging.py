from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attache_core.errors import ClientError
from attache_core.json_codec import Json
from attache_core.types.item_resource import item_resource
from attache_core.types.paging import Page, list_object, page_of, parse_page


def items(count: int) -> list[Json]:
    return [{"id": f"msg_{number}", "type": "message", "role": "user", "content": "x"} for number in range(count)]


@given(count=st.integers(0, 30), limit=st.integers(1, 7), order=st.sampled_from(["asc", "desc"]))
def test_pages_one_after_the_other_are_the_whole_list_in_its_order(
    count: int, limit: int, order: Literal["asc", "desc"]
) -> None:
    read: list[Json] = []
    after: str | None = None
    while True:
        page = page_of(items(count), Page(limit, after, order))
        read += page.items
        if not page.has_more:
            break
        after = page.items[-1]["id"]
    assert read == (items(count) if order == "asc" else items(count)[::-1])


def test_page_after_an_id_that_occurs_twice_begins_after_the_last_of_them() -> None:
    twice = [*items(2), items(1)[0], *items(4)[2:]]
    assert page_of(twice, Page(after="msg_0", order="asc")).items == items(4)[2:]


def test_page_after_an_unknown_item_answers_404_naming_the_parameter() -> None:
    with pytest.raises(ClientError) as refused:
        page_of(items(2), Page(after="msg_9"))
    assert (refused.value.http_status, refused.value.param, refused.value.message) == (
        404,
        "after",
        "No item found with id 'msg_9'",
    )


@pytest.mark.parametrize(
    ("query", "page"),
    [
        ("", Page()),
        ("limit=7&order=asc&after=msg_1&include[]=reasoning.encrypted_content", Page(7, "msg_1", "asc")),
        ("after=123&limit=100", Page(100, "123")),
        ("limit=1&limit=2&future=1", Page(2)),
    ],
)
def test_query_is_read_as_the_page_that_it_asks_for(query: str, page: Page) -> None:
    assert parse_page(query) == page


@pytest.mark.parametrize(
    ("query", "param", "code"),
    [
        ("limit=-1", "limit", "integer_below_min_value"),
        ("limit=101", "limit", "integer_above_max_value"),
        ("limit=", "limit", "invalid_type"),
        ("order=newest", "order", "invalid_value"),
        ("include=nothing", "include[0]", "invalid_value"),
    ],
)
def test_query_that_is_wrong_answers_400_naming_the_parameter(query: str, param: str, code: str) -> None:
    with pytest.raises(ClientError) as refused:
        parse_page(query)
    assert (refused.value.http_status, refused.value.param, refused.value.code) == (400, param, code)


def test_list_of_nothing_has_no_ids() -> None:
    listed = list_object(page_of([], Page()))
    assert listed == {"object": "list", "data": [], "first_id": None, "last_id": None, "has_more": False}


def test_item_is_shown_with_the_fields_that_a_client_may_leave_out_and_otherwise_as_it_is() -> None:
    shown = item_resource({"id": "fco_1", "type": "function_call_output", "call_id": "c", "output": "x"})
    assert shown == {
        "id": "fco_1",
        "type": "function_call_output",
        "call_id": "c",
        "output": "x",
        "status": "completed",
    }
    ours: Json = {"id": "mcp_1", "type": "mcp_call", "output": None}
    assert item_resource(ours) == ours
