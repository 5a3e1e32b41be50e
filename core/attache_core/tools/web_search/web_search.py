"""The execution of a call of `web_search`: from arguments to what the model is told. Failure is data.

Unaware of rounds, items' ids and events. Made once for a worker process.
"""

from __future__ import annotations

from dataclasses import dataclass

from attache_core import json_codec
from attache_core.errors import ToolError
from attache_core.json_codec import Json
from attache_core.tools.call_errors import INVALID_PARAMS, execution_error, protocol_error
from attache_core.tools.gateway_tool import CallResult
from attache_core.tools.outbound.fetch import Exchanges
from attache_core.tools.web_search.actions import Action, ActionError, FindInPage, OpenPage, public_action, read_action
from attache_core.tools.web_search.declaration import SearchScope
from attache_core.tools.web_search.pages import Pages
from attache_core.tools.web_search.providers import provider_of
from attache_core.tools.web_search.results import Source
from attache_core.tools.web_search.search import Searches
from attache_core.tools.web_search.settings import WebSearchSettings


@dataclass(frozen=True, slots=True)
class WebSearchResult(CallResult):
    """How a call ended.

    Attributes:
        sources: the pages that the model was shown.
    """

    sources: tuple[Source, ...] = ()


class WebSearch:
    """Searches the web and reads its pages, as the settings allow."""

    def __init__(self, settings: WebSearchSettings, exchanges: Exchanges | None = None) -> None:
        exchanges = exchanges or Exchanges()
        self._searches = Searches(provider_of(settings), settings, exchanges)
        self._pages = Pages(settings, exchanges)

    async def run(self, arguments: Json, scope: SearchScope) -> WebSearchResult:
        """Do what the arguments say, once. No time limit but those of the settings for each query and page."""
        try:
            text, sources = await self._do(read_action(arguments), scope)
        except ActionError as error:
            return WebSearchResult(None, protocol_error(INVALID_PARAMS, error.message))
        except ToolError as error:
            return WebSearchResult(None, execution_error([{"type": "text", "text": error.message}]))
        return WebSearchResult(text, sources=sources)

    async def _do(self, action: Action, scope: SearchScope) -> tuple[str, tuple[Source, ...]]:
        match action:
            case OpenPage(url):
                text, page = await self._pages.open(url, scope)
                return text, (page,)
            case FindInPage(url, pattern):
                text, page = await self._pages.find(url, pattern, scope)
                return text, (page,)
            case search:
                return await self._searches.run(search, scope)


def action_of(arguments: str) -> Json:
    """The public action of a call, from the JSON text that the model wrote; of one that means none, an empty search."""
    try:
        given = json_codec.decode(arguments)
        return public_action(read_action(given if isinstance(given, dict) else {}))
    except (ValueError, ToolError):
        return {"type": "search", "query": ""}
