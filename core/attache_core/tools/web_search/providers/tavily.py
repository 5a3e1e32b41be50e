"""Tavily. Source: https://docs.tavily.com/documentation/api-reference/endpoint/search."""

from __future__ import annotations

from collections.abc import Iterator

from attache_core import json_codec
from attache_core.tools.outbound.credentials import Credentials
from attache_core.tools.outbound.fetch import OutboundRequest
from attache_core.tools.outbound.secret import ApiKey
from attache_core.tools.web_search.providers.provider import SearchQuery, objects
from attache_core.tools.web_search.results import SearchResult, search_result

URL = "https://api.tavily.com"

_MAX_RESULTS = 20


class Tavily:
    """A `SearchProvider`. It knows countries by their English names only, so it is not told where the user is."""

    name = "tavily"

    def __init__(self, url: str, key: ApiKey) -> None:
        self._url = f"{url}/search"
        self._credentials = Credentials(authorization=key.reveal())

    def request(self, query: SearchQuery) -> OutboundRequest:
        """A JSON body; domains and recency are its own parameters."""
        wanted = {
            "query": query.text,
            "max_results": min(query.max_results, _MAX_RESULTS),
            "search_depth": "basic",
            "time_range": query.recency,
            "include_domains": list(query.allowed_domains) or None,
            "exclude_domains": list(query.blocked_domains) or None,
        }
        body = json_codec.encode({name: value for name, value in wanted.items() if value is not None})
        headers = {"content-type": "application/json", "accept": "application/json"}
        return OutboundRequest(self._url, "POST", headers, body, self._credentials)

    def results(self, answer: object) -> Iterator[SearchResult | None]:
        """`results`."""
        for found in objects(answer, "results"):
            yield search_result(
                found.get("url"), found.get("title"), [found.get("content")], found.get("published_date")
            )
