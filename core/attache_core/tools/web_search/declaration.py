"""A `web_search` entry of `tools`: what it may say, and what it means for a search.

Invariant: what would not be honoured is refused. Source: API reference, "tools", "Web search" and its preview.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, PlainValidator, StringConstraints

from attache_core.json_codec import Json
from attache_core.tools.outbound.hosts import plain_host
from attache_core.tools.web_search.location import NO_LOCATION, UserLocation
from attache_core.types.shape import Shape, array_of, choice, one_of, text
from attache_core.types.violation import quoted, refused

MAX_DOMAINS = 100
"""In one list of domains (API reference)."""

PREVIEW = "web_search_preview"

DECLARATIONS = ("web_search", "web_search_2025_08_26", PREVIEW, f"{PREVIEW}_2025_03_11")

CONTEXT_SIZES = ("low", "medium", "high")


def _check_domain(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    try:
        plain_host(text(value))
    except ValueError:
        expected = "Expected a domain such as 'example.com', without a scheme and a path."
        raise refused("invalid_value", f"Invalid '{{param}}': {quoted(value)}. {expected}") from None
    return value


_check_each_domain = array_of(_check_domain, "an array of domains")


def _check_domains(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, list) and len(value) > MAX_DOMAINS:
        bound = (
            f"Expected an array with maximum length {MAX_DOMAINS}, but got an array with length {len(value)} instead."
        )
        raise refused("array_above_max_length", f"Invalid '{{param}}': array too long. {bound}")
    return _check_each_domain(value)


def _check_access(value: bool) -> bool:
    if not value:
        message = "Invalid '{param}': this gateway has no pages of its own, and cannot search without the web."
        raise refused("unsupported_value", message)
    return value


_check_content_types = array_of(choice("text"), "an array of content types")
"""Images are not searched for."""

Domains = Annotated[Any, PlainValidator(_check_domains)]
_Place = Annotated[str, StringConstraints(max_length=200)]


class Filters(Shape):
    """Where results may come from."""

    allowed_domains: Domains | None = None
    blocked_domains: Domains | None = None


class Location(Shape):
    """Where the user is."""

    type: Annotated[str, one_of("approximate")] | None = None
    country: Annotated[str, StringConstraints(pattern="^[A-Za-z]{2}$")] | None = None
    region: _Place | None = None
    city: _Place | None = None
    timezone: _Place | None = None


class WebSearchTool(Shape):
    """The declaration."""

    filters: Filters | None = None
    search_context_size: Annotated[str, one_of(*CONTEXT_SIZES)] | None = None
    user_location: Location | None = None
    external_web_access: Annotated[bool, AfterValidator(_check_access)] | None = None
    search_content_types: Annotated[Any, PlainValidator(_check_content_types)] | None = None


@dataclass(frozen=True, slots=True)
class SearchScope:
    """What a declaration asks of every search.

    Attributes:
        max_results: of one query.
        max_snippet_chars: of one result.
    """

    allowed_domains: tuple[str, ...] = ()
    blocked_domains: tuple[str, ...] = ()
    location: UserLocation = NO_LOCATION
    max_results: int = 8
    max_snippet_chars: int = 800


_CONTEXT = {"low": (5, 300), "medium": (8, 800), "high": (15, 2000)}


def search_scope(declaration: Json) -> SearchScope:
    """What a declaration of valid shape means."""
    filters = declaration.get("filters") or {}
    location = declaration.get("user_location") or {}
    max_results, max_snippet_chars = _CONTEXT[declaration.get("search_context_size") or "medium"]
    country = location.get("country")
    return SearchScope(
        _domains(filters.get("allowed_domains")),
        _domains(filters.get("blocked_domains")),
        UserLocation(
            country.upper() if country else None,
            location.get("region") or None,
            location.get("city") or None,
            location.get("timezone") or None,
        ),
        max_results,
        max_snippet_chars,
    )


def public_web_search_tool(declaration: Json) -> Json:
    """What a response shows of it, as OpenAI's do; there, a location that is not given is the United States.

    The preview has no filters in the API. Here it may have them, and shows them only then.
    """
    location = declaration.get("user_location")
    places: Json = {"type": "approximate", "city": None, "country": None, "region": None, "timezone": None}
    filters = declaration.get("filters")
    special = {"filters": filters}
    if declaration["type"].startswith(PREVIEW):
        content_types = declaration.get("search_content_types") or ["text"]
        special = {"search_content_types": content_types, **({} if filters is None else special)}
    return {
        "type": declaration["type"],
        **special,
        "search_context_size": declaration.get("search_context_size") or "medium",
        "user_location": None if location is None else {**places, **location},
    }


def _domains(given: list[str] | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(plain_host(domain) for domain in given or ()))
