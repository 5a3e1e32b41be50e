from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attache_core.json_codec import Json, encode
from attache_core.tools.web_search.actions import (
    Action,
    ActionError,
    FindInPage,
    OpenPage,
    Search,
    public_action,
    read_action,
)
from attache_core.tools.web_search.function import web_search_function
from attache_core.tools.web_search.web_search import action_of
from core.tools.web_search.conftest import Run

URL = "https://h.test/"


@pytest.mark.parametrize(
    ("arguments", "action"),
    [
        ({"action": {"type": "search", "queries": ["a", " b ", "a"]}}, Search(("a", "b"))),
        ({"action": {"type": "search", "query": "a", "recency": "week"}}, Search(("a",), "week")),
        ({"action": {"type": "search", "query": "a", "queries": ["b"], "recency": ""}}, Search(("b",))),
        ({"action": {"type": "open_page", "url": URL}}, OpenPage(URL)),
        ({"action": {"type": "find_in_page", "url": URL, "pattern": "x"}}, FindInPage(URL, "x")),
    ],
)
def test_action_is_read_from_the_arguments(arguments: Json, action: Action) -> None:
    assert read_action(arguments) == action


WRONG: list[tuple[Json, str]] = [
    ({}, "`action.type` must be one of search, open_page and find_in_page."),
    ({"action": {"type": "click"}}, "`action.type` must be one of search, open_page and find_in_page."),
    ({"action": "open_page", "url": URL}, "`action.type` must be one of search, open_page and find_in_page."),
    ({"action": {"type": "search"}}, "A search needs `queries`: texts that are not empty."),
    ({"action": {"type": "search", "queries": ["a", 1]}}, "A search needs `queries`: texts that are not empty."),
    ({"action": {"type": "search", "queries": ["a", " "]}}, "A search needs `queries`: texts that are not empty."),
    ({"action": {"type": "search", "queries": list("abcdef")}}, "A search has at most 5 queries."),
    ({"action": {"type": "search", "query": "x" * 401}}, "A query has at most 400 characters."),
    (
        {"action": {"type": "search", "query": "x", "recency": "hour"}},
        "`recency` must be one of day, week, month, year.",
    ),
    ({"action": {"type": "open_page"}}, "`open_page` needs `url`, a text that is not empty."),
    ({"action": {"type": "open_page", "url": "x" * 2049}}, "`url` has at most 2048 characters."),
    ({"action": {"type": "find_in_page", "url": URL}}, "`find_in_page` needs `pattern`, a text that is not empty."),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG)
async def test_what_is_no_action_is_told_to_the_model_and_nobody_is_asked(
    run: Run, arguments: Json, message: str
) -> None:
    with pytest.raises(ActionError) as raised:
        read_action(arguments)
    assert raised.value.message == message
    action = arguments.get("action", {})
    if isinstance(action, dict) and action:
        assert (await run(action)).model_text == f"The tool call failed: {message}"


@pytest.mark.parametrize(
    ("action", "public"),
    [
        (Search(("a",), "day"), {"type": "search", "query": "a"}),
        (Search(("a", "b")), {"type": "search", "query": "a", "queries": ["a", "b"]}),
        (OpenPage(URL), {"type": "open_page", "url": URL}),
        (FindInPage(URL, "x"), {"type": "find_in_page", "url": URL, "pattern": "x"}),
    ],
)
def test_public_action_is_the_apis_and_reads_back(action: Action, public: Json) -> None:
    assert public_action(action) == public
    again = read_action({"action": public})
    assert public_action(again) == public


@given(
    st.recursive(
        st.none() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(["action", "type", "query", "queries", "url", "pattern", "recency"]),
                inner | st.just("search"),
            )
        ),
    )
)
def test_any_arguments_have_a_public_action(arguments: object) -> None:
    assert action_of(encode(arguments).decode())["type"] in ("search", "open_page", "find_in_page")


def test_broken_arguments_are_an_empty_search() -> None:
    assert action_of('{"action": ') == {"type": "search", "query": ""}


def test_function_asks_for_an_action() -> None:
    function = web_search_function()
    assert (function["type"], function["name"], function["parameters"]["required"]) == (
        "function",
        "web_search",
        ["action"],
    )
    assert function["parameters"]["properties"]["action"]["properties"]["queries"]["maxItems"] == 5
