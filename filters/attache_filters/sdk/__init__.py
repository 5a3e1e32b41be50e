"""All that the author of a filter imports."""

from attache_core.errors import AttacheError, ClientError, StoreError, ToolError, UpstreamError
from attache_core.events.event import Event
from attache_core.turn.below import Below
from attache_core.types.turn import Facts, TurnRequest, input_items
from attache_filters.sdk.filter import (
    Filter,
    FilterConfig,
    HttpFilter,
    InferenceFilter,
    RequestFilter,
    Services,
    TurnFilter,
)
from attache_filters.sdk.http import HttpBelow, HttpRequest, HttpResponse
from attache_filters.sdk.tenant import tenant_of

__all__ = [
    "TurnFilter",
    "RequestFilter",
    "InferenceFilter",
    "HttpFilter",
    "Filter",
    "FilterConfig",
    "Services",
    "Below",
    "HttpBelow",
    "TurnRequest",
    "Facts",
    "input_items",
    "Event",
    "HttpRequest",
    "HttpResponse",
    "tenant_of",
    "AttacheError",
    "ClientError",
    "UpstreamError",
    "StoreError",
    "ToolError",
]
