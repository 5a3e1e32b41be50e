"""You.com's search. Source: https://you.com/docs/api-reference/search/v1-search-post."""

from __future__ import annotations

from collections.abc import Iterator

from attache_core import json_codec
from attache_core.tools.outbound.credentials import Credentials
from attache_core.tools.outbound.fetch import OutboundRequest
from attache_core.tools.outbound.secret import ApiKey
from attache_core.tools.web_search.providers.provider import SearchQuery, objects, texts
from attache_core.tools.web_search.results import SearchResult, search_result

URL = "https://ydc-index.io"


class You:
    """A `SearchProvider`. Web results come first, news after them."""

    name = "you"

    def __init__(self, url: str, key: ApiKey) -> None:
        self._url = f"{url}/v1/search"
        self._credentials = Credentials({"x-api-key": key.reveal()})

    def request(self, query: SearchQuery) -> OutboundRequest:
        """A JSON body; domains, recency and country are its own parameters."""
        wanted = {
            "query": query.text,
            "count": query.max_results,
            "freshness": query.recency,
            "country": query.location.country,
            "include_domains": list(query.allowed_domains) or None,
            "exclude_domains": list(query.blocked_domains) or None,
        }
        body = json_codec.encode({name: value for name, value in wanted.items() if value is not None})
        headers = {"content-type": "application/json", "accept": "application/json"}
        return OutboundRequest(self._url, "POST", headers, body, self._credentials)

    def results(self, answer: object) -> Iterator[SearchResult | None]:
        """`results.web` and `results.news`."""
        for found in (*objects(answer, "results", "web"), *objects(answer, "results", "news")):
            snippets = texts(found.get("snippets")) or [found.get("description")]
            yield search_result(found.get("url"), found.get("title"), snippets, found.get("page_age"))
