"""What of web searches a client sees in a response: citations in the text, their number, of the calls what it wants.

The items that the response is made of hold more, for the rounds to come. Sans-IO; one object for each turn.
"""

from __future__ import annotations

from attache_core.events.event import Event
from attache_core.events.model_events import ModelEvent
from attache_core.json_codec import Json
from attache_core.tools.web_search.citing import Citing
from attache_core.tools.web_search.declaration import DECLARATIONS
from attache_core.tools.web_search.item import ITEM, num_requests, public_item
from attache_core.types.turn import TurnRequest, input_items


class WebView:
    """From what the model and its tools say to what the client sees of it."""

    def __init__(self, turn: TurnRequest) -> None:
        self._citing = Citing(input_items(turn.body))
        self._include = frozenset(turn.body.get("include") or ())

    def said(self, event: ModelEvent) -> list[ModelEvent]:
        """The event, with citations where it ends a text."""
        return self._citing.feed(event)

    def shown(self, event: Event) -> Event:
        """The event without what of a search the client has not asked for; its number and order are the same."""
        item, response = event.data.get("item"), event.data.get("response")
        if isinstance(item, dict) and item.get("type") == ITEM:
            return Event(event.type, {**event.data, "item": public_item(item, self._include)})
        if isinstance(response, dict) and any(each.get("type") == ITEM for each in response["output"]):
            return Event(event.type, {**event.data, "response": self._response(response)})
        return event

    def _response(self, response: Json) -> Json:
        kept: list[Json] = response["output"]
        output = [public_item(item, self._include) if item.get("type") == ITEM else item for item in kept]
        used = {**response["tool_usage"], "web_search": {"num_requests": num_requests(kept)}}
        return {**response, "output": output, "tool_usage": used}


def web_view(turn: TurnRequest) -> WebView | None:
    """The view of a turn that declares web search; None for one that does not, which has nothing to hide."""
    tools = turn.body.get("tools") or ()
    return WebView(turn) if any(tool.get("type") in DECLARATIONS for tool in tools) else None
