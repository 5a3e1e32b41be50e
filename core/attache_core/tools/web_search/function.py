"""The function that the model is given for a `web_search` declaration. Pure."""

from __future__ import annotations

from attache_core.json_codec import Json
from attache_core.tools.web_search.actions import MAX_QUERIES, RECENCIES

NAME = "web_search"
"""Also what `model_items` calls the function by which a `web_search_call` of the past is told."""

_DESCRIPTION = (
    "Search the web, open a page, or find a text in a page. "
    "`search` takes up to five `queries`, and `recency` to leave out what is older. "
    "`open_page` reads the page at `url`. `find_in_page` shows where `pattern` stands in the page at `url`. "
    "Cite what you use as a markdown link: [title](url)."
)

_ACTION: Json = {
    "type": "object",
    "properties": {
        "type": {"type": "string", "enum": ["search", "open_page", "find_in_page"]},
        "queries": {
            "type": "array",
            "items": {"type": "string"},
            "minItems": 1,
            "maxItems": MAX_QUERIES,
            "description": "For search.",
        },
        "recency": {"type": "string", "enum": list(RECENCIES), "description": "For search; optional."},
        "url": {"type": "string", "description": "For open_page and find_in_page."},
        "pattern": {"type": "string", "description": "For find_in_page: the text to look for, in any case."},
    },
    "required": ["type"],
}


def web_search_function() -> Json:
    """The function tool."""
    parameters: Json = {"type": "object", "properties": {"action": _ACTION}, "required": ["action"]}
    return {"type": "function", "name": NAME, "description": _DESCRIPTION, "parameters": parameters, "strict": False}
