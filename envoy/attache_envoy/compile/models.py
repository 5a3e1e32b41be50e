"""Routing by the model that a request names: Envoy reads it from the body, and chooses the route again.

The filter stands after authentication and before all chains. A body that has no `model`, or cannot be read, leaves the
route as it was: the one for no model, whose chain says what is wrong. Invariant: the metadata can come from nowhere
else, for no client can set any.
Source: Envoy's `json_to_metadata` filter.
"""

from __future__ import annotations

from envoy_data_plane.envoy.extensions.filters.http.json_to_metadata.v3 import (
    JsonToMetadata,
    JsonToMetadataKeyValuePair,
    JsonToMetadataMatchRules,
    JsonToMetadataRule,
    JsonToMetadataSelector,
)
from envoy_data_plane.envoy.extensions.filters.network.http_connection_manager.v3 import HttpFilter
from envoy_data_plane.envoy.type.matcher.v3 import (
    MetadataMatcher,
    MetadataMatcherPathSegment,
    RegexMatcher,
    StringMatcher,
    ValueMatcher,
)

from attache_envoy.compile.messages import packed
from attache_envoy.gateway.models import ANY, is_beginning

MODEL_FILTER = "attache.model"
_KEY = "model"

_JSON_TYPES = r"(?i)(application/([\w.-]+\+)?json|text/plain|application/x-www-form-urlencoded)\s*(;.*)?"
"""What a body that is read may be called: chains read JSON whatever it is called, and `curl -d` calls it a form."""


def model_filter() -> HttpFilter:
    """Reads `model` from a request's body; switched off until a route switches it on."""
    found = JsonToMetadataKeyValuePair(metadata_namespace=MODEL_FILTER, key=_KEY)
    rule = JsonToMetadataRule(selectors=[JsonToMetadataSelector(key="model")], on_present=found)
    rules = JsonToMetadataMatchRules(
        rules=[rule], allow_content_types_regex=RegexMatcher(regex=_JSON_TYPES), allow_empty_content_type=True
    )
    return HttpFilter(name=MODEL_FILTER, typed_config=packed(JsonToMetadata(request_rules=rules)), disabled=True)


def has_model(pattern: str) -> MetadataMatcher:
    """Matches requests for a model of this pattern."""
    if is_beginning(pattern):
        return _matcher(StringMatcher(prefix=pattern.removesuffix(ANY)))
    return _matcher(StringMatcher(exact=pattern))


def names_model() -> MetadataMatcher:
    """Matches requests for any model at all."""
    return _matcher(StringMatcher(safe_regex=RegexMatcher(regex="(?s).+")))


def _matcher(text: StringMatcher) -> MetadataMatcher:
    return MetadataMatcher(
        filter=MODEL_FILTER, path=[MetadataMatcherPathSegment(key=_KEY)], value=ValueMatcher(string_match=text)
    )
