"""A SearXNG instance of one's own, with `json` among its `search.formats`.

Source: https://docs.searxng.org/dev/search_api.html.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlencode

from attache_core.tools.outbound.credentials import Credentials
from attache_core.tools.outbound.fetch import OutboundRequest
from attache_core.tools.outbound.secret import ApiKey
from attache_core.tools.web_search.actions import MAX_QUERY_CHARS
from attache_core.tools.web_search.providers.provider import SearchQuery, objects, with_sites
from attache_core.tools.web_search.results import SearchResult, search_result

_MAX_CHARS = 2 * MAX_QUERY_CHARS


class Searxng:
    """A `SearchProvider`. It says itself how many results there are, and knows nothing of locations.

    A key is for what stands before the instance, and goes as a bearer token; SearXNG itself has none.
    """

    name = "searxng"

    def __init__(self, url: str, key: ApiKey | None) -> None:
        self._url = f"{url}/search"
        self._credentials = Credentials(authorization=key.reveal()) if key else Credentials()

    def request(self, query: SearchQuery) -> OutboundRequest:
        """A query string; domains are `site:` operators, which its engines may or may not know."""
        wanted = {"q": with_sites(query, _MAX_CHARS), "format": "json"}
        recency = {"time_range": query.recency} if query.recency else {}
        url = f"{self._url}?{urlencode({**wanted, **recency}, errors='replace')}"
        return OutboundRequest(url, headers={"accept": "application/json"}, credentials=self._credentials)

    def results(self, answer: object) -> Iterator[SearchResult | None]:
        """`results`."""
        for found in objects(answer, "results"):
            yield search_result(
                found.get("url"), found.get("title"), [found.get("content")], found.get("publishedDate")
            )
