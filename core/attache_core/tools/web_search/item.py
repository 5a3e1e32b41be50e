"""The public life of a `web_search_call` item, and how the model is told of it later on. Pure.

The item is kept with more than a client sees: the titles of its sources, and the text that the model was told, without
which the next round would know nothing of it. `public_item` leaves out what was not asked for, and a later turn knows
no more than that: OpenAI, too, does not carry what a search found over to the next turn (web search guide, "Search
context size"). Source: API reference, "web_search_call" and `include`; OpenAI's streams.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from attache_core import json_codec
from attache_core.events.model_events import ItemAdded, ItemDone, ItemEvent, ModelEvent
from attache_core.json_codec import Json
from attache_core.tools.web_search.results import Source

ITEM = "web_search_call"
SOURCES = "web_search_call.action.sources"
RESULTS = "web_search_call.results"
"""What `include` may ask for."""

DONE = "[Done in an earlier turn. What it showed is not repeated here; what was said after it was based on it.]"
NOT_DONE = "[It was not done.]"
"""What the model is told of a call of an earlier turn, in place of its results."""


def call_begun(key: str) -> list[ModelEvent]:
    """The call is being executed; what it does is told when it has ended."""
    return [
        ItemAdded(key, {"type": ITEM, "status": "in_progress"}),
        ItemEvent(key, f"response.{ITEM}.in_progress"),
        ItemEvent(key, f"response.{ITEM}.searching"),
    ]


def call_ended(key: str, action: Json, sources: Iterable[Source], told: str, *, failed: bool) -> list[ModelEvent]:
    """It has ended. `told` is what the model is told; the API has no event for a failure but the item's status."""
    kept = {"sources": [{"type": "url", "url": source.url, "title": source.title} for source in sources]}
    item: Json = {
        "type": ITEM,
        "status": "failed" if failed else "completed",
        "action": {**action, **(kept if kept["sources"] else {})},
        "results": [{"type": "text", "text": told}],
    }
    completed: list[ModelEvent] = [] if failed else [ItemEvent(key, f"response.{ITEM}.completed")]
    return [*completed, ItemDone(key, item)]


def public_item(item: Json, include: Collection[str]) -> Json:
    """What a client sees of a kept item: the sources of a search, and results, only where `include` names them."""
    shown = {name: value for name, value in item.items() if name != "results" or RESULTS in include}
    action = item.get("action")
    if isinstance(action, dict) and "sources" in action:
        listed = SOURCES in include and action.get("type") == "search"
        sources = {"sources": [{"type": "url", "url": source.url} for source in sources_of(item)]} if listed else {}
        shown["action"] = {**{name: value for name, value in action.items() if name != "sources"}, **sources}
    return shown


def sources_of(item: Json) -> Iterator[Source]:
    """The pages that a call showed to the model; none of an item that is not as it was kept."""
    action = item.get("action")
    sources = action.get("sources") if isinstance(action, dict) else None
    for source in sources if isinstance(sources, list) else ():
        if isinstance(source, dict) and isinstance(source.get("url"), str):
            title = source.get("title")
            yield Source(source["url"], title if isinstance(title, str) else source["url"])


def told_call(item: Json, call_id: str, name: str) -> list[Json]:
    """The function call and the output that the model made and was told, as far as the item has it."""
    results = item.get("results")
    texts = [result.get("text") for result in results if isinstance(result, dict)] if isinstance(results, list) else []
    told = "\n".join(text for text in texts if isinstance(text, str)) or _without_results(item)
    arguments = json_codec.encode({"action": _asked(item.get("action"))}).decode()
    return [
        {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments},
        {"type": "function_call_output", "call_id": call_id, "output": told},
    ]


def num_requests(output: Iterable[Json]) -> int:
    """`tool_usage.web_search.num_requests` of a response: the queries of its searches, but for those that failed."""
    return sum(_queries_of(item) for item in output if item.get("type") == ITEM and item.get("status") == "completed")


def _queries_of(item: Json) -> int:
    action = item.get("action")
    if not isinstance(action, dict) or action.get("type") != "search":
        return 0
    queries = action.get("queries")
    return len(queries) if isinstance(queries, list) else 1


def _without_results(item: Json) -> str:
    """Said in words: a model that finds nothing but `completed` searches again for what it has already answered."""
    if item.get("status") not in (None, "completed"):
        return NOT_DONE
    pages = [source.url for source in sources_of(item)]
    return "\n".join([DONE, *(["It showed these pages:", *pages] if pages else [])])


def _asked(action: object) -> Json:
    """A public action as the model writes it: a single query is a list of one."""
    if not isinstance(action, dict):
        return {}
    asked = {name: value for name, value in action.items() if name not in ("sources", "query")}
    return asked if "queries" in asked or "query" not in action else {**asked, "queries": [action["query"]]}
