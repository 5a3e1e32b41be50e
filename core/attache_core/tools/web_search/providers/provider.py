"""What a search provider is: how it is asked, and how its answer is read. Both pure; asking is `search`'s.

Unaware of time limits, rate limits and the number of queries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from attache_core.tools.outbound.fetch import OutboundRequest
from attache_core.tools.web_search.actions import Recency
from attache_core.tools.web_search.location import NO_LOCATION, UserLocation
from attache_core.tools.web_search.results import SearchResult


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """One query.

    Attributes:
        max_results: how many are wanted; there may be more or fewer.
        allowed_domains: only these and what is below them; none means all. A provider may be unable to do so.
        blocked_domains: none of these and of what is below them; likewise.
    """

    text: str
    max_results: int
    recency: Recency | None = None
    allowed_domains: tuple[str, ...] = ()
    blocked_domains: tuple[str, ...] = ()
    location: UserLocation = NO_LOCATION


class SearchProvider(Protocol):
    """One provider with the gateway's key for it.

    Attributes:
        name: as in the settings.
    """

    @property
    def name(self) -> str: ...

    def request(self, query: SearchQuery) -> OutboundRequest:
        """How to ask; the key is in its `credentials` and nowhere else."""
        ...

    def results(self, answer: object) -> Iterator[SearchResult | None]:
        """The results in an answer of status 200, in its order; None for one that cannot be used.

        `answer` is any JSON value; what is not as the provider's documentation says is no result.
        """
        ...


def objects(value: object, *path: str) -> list[Mapping[str, object]]:
    """The objects in the list at `path` of a JSON value; none where there is no list."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def texts(value: object) -> list[object]:
    """The elements of a JSON list; none where it is something else."""
    return value if isinstance(value, list) else []


def with_sites(query: SearchQuery, max_chars: int) -> str:
    """The query with `site:` operators for its domains, as many of them as fit; the results are filtered anyway."""
    text = query.text
    allowed = " OR ".join(f"site:{domain}" for domain in query.allowed_domains)
    for more in (
        f"({allowed})" if " OR " in allowed else allowed,
        *(f"-site:{name}" for name in query.blocked_domains),
    ):
        if more and len(text) + 1 + len(more) <= max_chars:
            text = f"{text} {more}"
    return text
