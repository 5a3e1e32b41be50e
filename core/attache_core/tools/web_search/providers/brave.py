"""Brave Search. Source: https://api-dashboard.search.brave.com/api-reference/web/search/get."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlencode

from attache_core.tools.outbound.credentials import Credentials
from attache_core.tools.outbound.fetch import OutboundRequest
from attache_core.tools.outbound.secret import ApiKey
from attache_core.tools.web_search.location import UserLocation
from attache_core.tools.web_search.providers.provider import SearchQuery, objects, texts, with_sites
from attache_core.tools.web_search.results import SearchResult, search_result

URL = "https://api.search.brave.com"

_MAX_CHARS = 400
_MAX_WORDS = 50
_MAX_COUNT = 20
_FRESHNESS = {"day": "pd", "week": "pw", "month": "pm", "year": "py"}


class Brave:
    """A `SearchProvider`. Domains are `site:` operators of the query, as far as its 400 characters go."""

    name = "brave"

    def __init__(self, url: str, key: ApiKey) -> None:
        self._url = f"{url}/res/v1/web/search"
        self._credentials = Credentials({"x-subscription-token": key.reveal()})

    def request(self, query: SearchQuery) -> OutboundRequest:
        """A query string; the location is told in headers."""
        words = with_sites(query, _MAX_CHARS).split()[:_MAX_WORDS]
        wanted = {
            "q": " ".join(words),
            "count": min(query.max_results, _MAX_COUNT),
            "text_decorations": "false",
            **({"freshness": _FRESHNESS[query.recency]} if query.recency else {}),
        }
        headers = {"accept": "application/json", **_location(query.location)}
        url = f"{self._url}?{urlencode(wanted, errors='replace')}"
        return OutboundRequest(url, headers=headers, credentials=self._credentials)

    def results(self, answer: object) -> Iterator[SearchResult | None]:
        """`web.results`."""
        for found in objects(answer, "web", "results"):
            snippets = [found.get("description"), *texts(found.get("extra_snippets"))]
            yield search_result(found.get("url"), found.get("title"), snippets, found.get("page_age"))


def _location(location: UserLocation) -> dict[str, str]:
    """Only what a header can hold."""
    named = {
        "x-loc-country": location.country,
        "x-loc-state-name": location.region,
        "x-loc-city": location.city,
        "x-loc-timezone": location.timezone,
    }
    return {name: value for name, value in named.items() if value and value.isascii() and value.isprintable()}
