from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from attache_core.errors import ClientError
from attache_core.json_codec import Json
from attache_core.tools.web_search.declaration import (
    MAX_DOMAINS,
    SearchScope,
    WebSearchTool,
    public_web_search_tool,
    search_scope,
)
from attache_core.tools.web_search.location import UserLocation
from attache_core.tools.web_search.settings import WebSearchSettings
from attache_core.types.shape import check

KEY = "canary-key-7f3a"


@pytest.mark.parametrize(
    ("fields", "scope"),
    [
        ({}, SearchScope()),
        ({"filters": None, "user_location": None, "search_context_size": None, "of_tomorrow": 1}, SearchScope()),
        (
            {"search_context_size": "low", "external_web_access": True},
            SearchScope(max_results=5, max_snippet_chars=300),
        ),
        ({"search_context_size": "high"}, SearchScope(max_results=15, max_snippet_chars=2000)),
        (
            {"filters": {"allowed_domains": ["A.test", "a.test."], "blocked_domains": ["b\u00fccher.a.test"]}},
            SearchScope(("a.test",), ("xn--bcher-kva.a.test",)),
        ),
        (
            {"user_location": {"type": "approximate", "country": "de", "city": "Ulm", "region": "", "timezone": None}},
            SearchScope(location=UserLocation("DE", None, "Ulm")),
        ),
    ],
)
def test_declaration_is_read_as_a_scope(fields: Json, scope: SearchScope) -> None:
    declaration = {"type": "web_search", **fields}
    check(WebSearchTool, declaration)
    assert search_scope(declaration) == scope


WRONG: list[tuple[Json, str]] = [
    ({"search_context_size": "huge"}, "search_context_size"),
    ({"filters": {"allowed_domains": "a.test"}}, "filters.allowed_domains"),
    ({"filters": {"allowed_domains": ["https://a.test"]}}, "filters.allowed_domains[0]"),
    ({"filters": {"blocked_domains": ["a.test", "*.a.test"]}}, "filters.blocked_domains[1]"),
    ({"filters": {"allowed_domains": ["a.test"] * (MAX_DOMAINS + 1)}}, "filters.allowed_domains"),
    ({"user_location": {"type": "exact"}}, "user_location.type"),
    ({"user_location": {"country": "Germany"}}, "user_location.country"),
    ({"external_web_access": False}, "external_web_access"),
    ({"search_content_types": ["text", "image"]}, "search_content_types[1]"),
    ({"search_content_types": "text"}, "search_content_types"),
]


@pytest.mark.parametrize(("fields", "param"), WRONG)
def test_declaration_that_would_not_be_honoured_is_refused(fields: Json, param: str) -> None:
    with pytest.raises(ClientError) as raised:
        check(WebSearchTool, {"type": "web_search", **fields})
    assert (raised.value.http_status, raised.value.param) == (400, param)


def test_response_shows_a_declaration_with_its_defaults() -> None:
    assert public_web_search_tool({"type": "web_search"}) == {
        "type": "web_search",
        "filters": None,
        "search_context_size": "medium",
        "user_location": None,
    }
    shown = public_web_search_tool({"type": "web_search_preview", "user_location": {"country": "DE"}, "of_tomorrow": 1})
    assert shown == {
        "type": "web_search_preview",
        "search_content_types": ["text"],
        "search_context_size": "medium",
        "user_location": {"type": "approximate", "country": "DE", "city": None, "region": None, "timezone": None},
    }


def test_response_shows_filters_of_a_preview_where_it_has_them() -> None:
    declaration = {"type": "web_search_preview_2025_03_11", "filters": {"allowed_domains": ["a.test"]}}
    check(WebSearchTool, {**declaration, "search_content_types": ["text"]})
    assert public_web_search_tool(declaration)["filters"] == {"allowed_domains": ["a.test"]}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"provider": "bing", "api_key": KEY}, "Input should be 'you', 'brave', 'tavily' or 'searxng'"),
        ({"provider": "brave"}, "brave needs `api_key`, such as `\\${BRAVE_API_KEY}`."),
        ({"provider": "searxng"}, "searxng needs `url`, the address of your instance."),
        ({"provider": "searxng", "url": "searxng:8080"}, "a URL such as `http://searxng:8080`"),
        ({"provider": "searxng", "url": "http://u:p@h/"}, "a URL such as `http://searxng:8080`"),
        ({"provider": "you", "api_key": KEY, "keys": 1}, "Extra inputs are not permitted"),
        ({"api_key": KEY}, "Field required"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        WebSearchSettings.model_validate(settings)


def test_no_text_form_of_the_settings_shows_the_key() -> None:
    settings = WebSearchSettings.model_validate({"provider": "you", "api_key": KEY})
    texts = [repr(settings), str(settings), settings.model_dump_json(), repr(settings.model_dump())]
    assert all(KEY not in text for text in texts)
