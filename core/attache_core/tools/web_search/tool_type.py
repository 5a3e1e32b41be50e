"""The tool type `web_search`, also as its preview: one function for the model, whose calls the gateway executes.

Thin: what a declaration means, what a call does and what a client sees of it are its neighbours' to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from attache_core.errors import ClientError
from attache_core.events.model_events import ModelEvent
from attache_core.json_codec import Json
from attache_core.tools.function_items import digest
from attache_core.tools.gateway_tool import CallMade, CallResult, GatewayTool
from attache_core.tools.tool_type import ModelNames, Offer, OfferedTool, ToolType
from attache_core.tools.web_search.declaration import (
    DECLARATIONS,
    SearchScope,
    WebSearchTool,
    public_web_search_tool,
    search_scope,
)
from attache_core.tools.web_search.function import NAME, web_search_function
from attache_core.tools.web_search.item import ITEM, call_begun, call_ended, told_call
from attache_core.tools.web_search.web_search import WebSearch, WebSearchResult, action_of


@dataclass(frozen=True, slots=True)
class WebSearchCalls(GatewayTool):
    """Executes the calls of one request."""

    web: WebSearch
    scope: SearchScope

    async def call(self, arguments: Json) -> CallResult:
        """Search, open a page, or find a text in one."""
        return await self.web.run(arguments, self.scope)

    def begun(self, call: CallMade) -> list[ModelEvent]:
        """A `web_search_call` in progress."""
        return call_begun(call.key)

    def ended(self, call: CallMade, result: CallResult) -> list[ModelEvent]:
        """The item with its action, as it is kept; see `item.public_item`."""
        sources = result.sources if isinstance(result, WebSearchResult) else ()
        action, failed = action_of(call.arguments), result.error is not None
        return call_ended(call.key, action, sources, result.model_text, failed=failed)


def tell_call(item: Json, position: int, names: ModelNames) -> list[Json]:
    """The function call and the output that the model made and was told."""
    given = item.get("id")
    call_id = digest("call", f"position {position}" if given is None else f"id {given}")
    declared = next((each for each in DECLARATIONS if names.has(each, None, NAME)), DECLARATIONS[0])
    return told_call(item, call_id, names.name_of(declared, None, NAME))


class WebSearchType(ToolType):
    """Web search, for the life of a worker process."""

    shapes = dict.fromkeys(DECLARATIONS, WebSearchTool)
    tellers = {ITEM: tell_call}  # noqa: RUF012 - declared as ClassVar in the base class

    def __init__(self, web: WebSearch) -> None:
        super().__init__()
        self._web = web

    def public(self, declaration: Json) -> Json:
        """The declaration with its defaults."""
        return public_web_search_tool(declaration)

    def check_together(self, declarations: Sequence[Json]) -> None:
        """Refuse two of them: the model could not tell which is which."""
        if len(declarations) > 1:
            message = "Invalid 'tools': a request may declare web search only once."
            raise ClientError(message, param="tools", code="invalid_value")

    async def offer(self, declaration: Json) -> Offer:
        """The one function."""
        calls = WebSearchCalls(self._web, search_scope(declaration))
        return Offer((OfferedTool(declaration["type"], None, NAME, web_search_function(), calls),))
