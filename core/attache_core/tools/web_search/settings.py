"""The settings of the tool type `web_search`: which provider is asked, which pages may be read, and all bounds."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from attache_core.tools.outbound.secret import ApiKey
from attache_core.tools.outbound.settings import OutboundSettings

SECTION = "web_search"

ProviderName = Literal["you", "brave", "tavily", "searxng"]


def _base_url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise ValueError("a URL such as `http://searxng:8080`, without a login and a query, is expected.")
    return text.rstrip("/")


BaseUrl = Annotated[str, AfterValidator(_base_url)]


class WebSearchSettings(OutboundSettings):
    """How the web is searched and read. The outbound keys are about pages; the provider's URL is the operator's own."""

    provider: ProviderName
    """Who is asked."""

    api_key: ApiKey | None = None
    """The key for the provider. SearXNG needs none."""

    url: BaseUrl | None = None
    """Where the provider is, for SearXNG, which has no address of its own, or for a stand-in of another."""

    search_timeout_s: float = Field(default=15.0, gt=0)
    """Seconds for one query."""

    max_answer_bytes: int = Field(default=2 * 1024 * 1024, ge=1024)
    """What a provider may answer to one query."""

    max_parallel_queries: int = Field(default=10, ge=1)
    """Queries of all turns of a worker process under way at once; the others wait for their turn."""

    page_timeout_s: float = Field(default=20.0, gt=0)
    """Seconds for one page, redirects included."""

    max_redirects: int = Field(default=5, ge=0)
    """Redirects of one page."""

    max_page_bytes: int = Field(default=1024 * 1024, ge=1024)
    """What is read of a page."""

    max_page_chars: int = Field(default=40_000, ge=100)
    """What the model is told of a page."""

    max_matches: int = Field(default=20, ge=1)
    """Places that `find_in_page` shows."""

    match_context_chars: int = Field(default=200, ge=0)
    """What it shows on each side of a place."""

    @model_validator(mode="after")
    def _check_provider(self) -> WebSearchSettings:
        if self.provider == "searxng" and self.url is None:
            raise ValueError("searxng needs `url`, the address of your instance.")
        if self.provider != "searxng" and self.api_key is None:
            raise ValueError(f"{self.provider} needs `api_key`, such as `${{{self.provider.upper()}_API_KEY}}`.")
        return self
