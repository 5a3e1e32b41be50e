"""How the built-in filters that ask an inference server are set up for one of them.

Knows the settings of an upstream that are a filter's business, and which filter speaks which API. What an entry says
itself wins; settings that its filter does not have are left out. Filters of others are left alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from attache_core.json_codec import Json
from attache_envoy.gateway.entries import Entry, FilterEntry
from attache_envoy.gateway.upstream import Api, Upstream
from attache_filters.sdk.registry import FilterClass

FILTER_OF_API: Mapping[Api, str] = {"responses": "upstream_round", "chat_completions": "chat_completions"}
"""The filter that asks a server over each API."""

UPSTREAM_SETTINGS = ("dialect", "headers_timeout_s", "idle_timeout_s")
"""The settings of an upstream that the filter which asks it has as well."""


def entry_for(upstream: Upstream, entry: Entry, filters: Mapping[str, FilterClass]) -> Entry:
    """The entry as it is for this upstream: an `upstream_round` asks over the upstream's API, as its settings say."""
    if not isinstance(entry, FilterEntry) or entry.filter not in FILTER_OF_API.values():
        return entry
    name = FILTER_OF_API[upstream.api] if entry.filter == FILTER_OF_API["responses"] else entry.filter
    settings = _known({**_of_upstream(upstream), **entry.settings}, filters[name])
    return FilterEntry.model_validate({"filter": name, "isolate": entry.isolate, **settings})


def _of_upstream(upstream: Upstream) -> Json:
    return {name: getattr(upstream, name) for name in UPSTREAM_SETTINGS}


def _known(settings: Json, filter_class: FilterClass) -> Json:
    return {name: value for name, value in settings.items() if name in filter_class.config_type.model_fields}
