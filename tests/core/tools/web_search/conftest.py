"""What the tests of web search share."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from attache_core.json_codec import Json
from attache_core.testing.search_server import SearchServer, running_search_server
from attache_core.tools.outbound.fetch import Exchanges
from attache_core.tools.web_search.declaration import SearchScope
from attache_core.tools.web_search.settings import WebSearchSettings
from attache_core.tools.web_search.web_search import WebSearch, WebSearchResult

KEY = "canary-key-7f3a"
TLS = ssl.create_default_context()

Run = Callable[..., Any]


@pytest.fixture
async def server() -> AsyncIterator[SearchServer]:
    """A web server that answers nothing yet."""
    async with running_search_server() as running:
        yield running


@pytest.fixture
def run(server: SearchServer) -> Run:
    """Runs one action with a provider that is the server; its pages may be on loopback."""

    async def running(
        action: Json, provider: str = "tavily", scope: SearchScope | None = None, **settings: Any
    ) -> WebSearchResult:
        given = {"provider": provider, "api_key": KEY, "url": server.url, "allow_private_addresses": True, **settings}
        search = WebSearch(WebSearchSettings.model_validate(given), Exchanges(TLS))
        async with asyncio.timeout(5):
            return await search.run({"action": action}, scope or SearchScope())

    return running
