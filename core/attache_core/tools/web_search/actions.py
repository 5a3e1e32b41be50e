"""What a model can do on the web: search, open a page, find a text in a page. Values, read from a call's arguments.

Unaware of providers and of HTTP. The arguments are made like the `action` of the public item. Source: API reference,
"web_search_call".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from attache_core.errors import ToolError
from attache_core.json_codec import Json

MAX_QUERIES = 5
"""Queries of one search; they are asked at once."""

MAX_QUERY_CHARS = 400
MAX_URL_CHARS = 2048
MAX_PATTERN_CHARS = 400

Recency = Literal["day", "week", "month", "year"]
RECENCIES: tuple[Recency, ...] = get_args(Recency)


class ActionError(ToolError):
    """The model's arguments are no action; the message says what would be one."""


@dataclass(frozen=True, slots=True)
class Search:
    """Ask a search provider; 1 to `MAX_QUERIES` queries."""

    queries: tuple[str, ...]
    recency: Recency | None = None


@dataclass(frozen=True, slots=True)
class OpenPage:
    """Read a page."""

    url: str


@dataclass(frozen=True, slots=True)
class FindInPage:
    """Look for a text in a page."""

    url: str
    pattern: str


Action = Search | OpenPage | FindInPage


def read_action(arguments: Json) -> Action:
    """The action that the arguments mean. Raises ActionError when they mean none."""
    action = arguments.get("action")
    fields = action if isinstance(action, dict) else {}
    match fields.get("type"):
        case "search":
            return Search(_queries(fields), _recency(fields))
        case "open_page":
            return OpenPage(_text(fields, "url", MAX_URL_CHARS))
        case "find_in_page":
            return FindInPage(_text(fields, "url", MAX_URL_CHARS), _text(fields, "pattern", MAX_PATTERN_CHARS))
        case _:
            raise ActionError("`action.type` must be one of search, open_page and find_in_page.")


def public_action(action: Action) -> Json:
    """The `action` of a `web_search_call`, without sources; one query stands alone, several are listed as well."""
    match action:
        case Search(queries):
            several: Json = {"queries": list(queries)} if len(queries) > 1 else {}
            return {"type": "search", "query": queries[0], **several}
        case OpenPage(url):
            return {"type": "open_page", "url": url}
        case FindInPage(url, pattern):
            return {"type": "find_in_page", "url": url, "pattern": pattern}


def _queries(fields: Json) -> tuple[str, ...]:
    given = fields.get("queries")
    if not isinstance(given, list) or not given:
        given = [fields.get("query")]
    queries = [text.strip() for text in given if isinstance(text, str) and text.strip()]
    if not queries or len(queries) < len(given):
        raise ActionError("A search needs `queries`: texts that are not empty.")
    if len(queries) > MAX_QUERIES:
        raise ActionError(f"A search has at most {MAX_QUERIES} queries.")
    _require_short(queries)
    return tuple(dict.fromkeys(queries))


def _require_short(queries: Sequence[str]) -> None:
    if any(len(query) > MAX_QUERY_CHARS for query in queries):
        raise ActionError(f"A query has at most {MAX_QUERY_CHARS} characters.")


def _recency(fields: Json) -> Recency | None:
    given = fields.get("recency")
    for recency in RECENCIES:
        if recency == given:
            return recency
    if given in (None, ""):
        return None
    raise ActionError(f"`recency` must be one of {', '.join(RECENCIES)}.")


def _text(fields: Json, name: str, max_chars: int) -> str:
    given = fields.get(name)
    if not isinstance(given, str) or not given.strip():
        raise ActionError(f"`{fields['type']}` needs `{name}`, a text that is not empty.")
    if len(given) > max_chars:
        raise ActionError(f"`{name}` has at most {max_chars} characters.")
    return given.strip()
