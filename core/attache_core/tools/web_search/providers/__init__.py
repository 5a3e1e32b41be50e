"""The search providers, by their names in the settings."""

from __future__ import annotations

from typing import assert_never

from attache_core.tools.outbound.secret import ApiKey
from attache_core.tools.web_search.providers import brave, tavily, you
from attache_core.tools.web_search.providers.brave import Brave
from attache_core.tools.web_search.providers.provider import SearchProvider
from attache_core.tools.web_search.providers.searxng import Searxng
from attache_core.tools.web_search.providers.tavily import Tavily
from attache_core.tools.web_search.providers.you import You
from attache_core.tools.web_search.settings import WebSearchSettings

__all__ = ["SearchProvider", "provider_of"]


def provider_of(settings: WebSearchSettings) -> SearchProvider:
    """The provider that the settings name, with its key."""
    key = settings.api_key or ApiKey("")
    match settings.provider:
        case "you":
            return You(settings.url or you.URL, key)
        case "brave":
            return Brave(settings.url or brave.URL, key)
        case "tavily":
            return Tavily(settings.url or tavily.URL, key)
        case "searxng":
            return Searxng(settings.url or "", settings.api_key)
        case other:
            assert_never(other)
