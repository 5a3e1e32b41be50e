"""The HTTP filter chain of a listener, and the headers that are ours, or Envoy's, alone.

What begins with `x-attache-` or `x-envoy-` is never taken from a client (`forged_headers`, before the route is chosen:
Envoy obeys some of them) and never sent to one (the first filter, which is the last to see a response), whoever wrote
it. What begins with `x-attache-` is never shown to an inference server (the last filter before the router), and what
begins with `attache-`, by which filters tell a client something, is never taken from one (a filter of its cluster: one
of the listener would see what our own filters answer as well).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import assert_never

import betterproto2
from envoy_data_plane.envoy.config.common.mutation_rules.v3 import HeaderMutation, HeaderMutationRemoveOnMatch
from envoy_data_plane.envoy.config.core.v3 import TypedExtensionConfig
from envoy_data_plane.envoy.extensions.filters.http.header_mutation.v3 import HeaderMutation as HeaderMutationFilter
from envoy_data_plane.envoy.extensions.filters.http.header_mutation.v3 import Mutations
from envoy_data_plane.envoy.extensions.filters.http.router.v3 import Router
from envoy_data_plane.envoy.extensions.filters.http.upstream_codec.v3 import UpstreamCodec
from envoy_data_plane.envoy.extensions.filters.network.http_connection_manager.v3 import HttpFilter
from envoy_data_plane.envoy.extensions.http.early_header_mutation.header_mutation.v3 import (
    HeaderMutation as EarlyHeaderMutation,
)
from envoy_data_plane.envoy.type.matcher.v3 import StringMatcher

from attache_core.json_codec import Json
from attache_core.tools.outbound.secret import ApiKey
from attache_core.types.turn import RESPONSE_HEADER_PREFIX
from attache_envoy.compile.authentication import authentication_filters
from attache_envoy.compile.ext_proc import FILTER_NAME, foreign_filter, segment_filter
from attache_envoy.compile.messages import extension, header, packed
from attache_envoy.compile.plan import Element, PlannedChain, PlannedForeign, PlannedNative, PlannedSegment
from attache_envoy.gateway.authentication import Authentication
from attache_filters.extproc.headers import INTERNAL_PREFIX

_ENVOY_PREFIX = "x-envoy-"

NO_SCRIPTS: Mapping[str, HttpFilter] = MappingProxyType({})


def _without(prefix: str) -> HeaderMutation:
    matcher = StringMatcher(prefix=prefix, ignore_case=True)
    return HeaderMutation(remove_on_match=HeaderMutationRemoveOnMatch(key_matcher=matcher))


def _bearer(key: ApiKey) -> HeaderMutation:
    """A key in the place of any credential of a client's. A percent sign would begin one of Envoy's commands."""
    return HeaderMutation(append=header("authorization", f"Bearer {key.reveal()}".replace("%", "%%")))


_REMOVE_OURS = [_without(INTERNAL_PREFIX)]
_REMOVE_INTERNAL = [*_REMOVE_OURS, _without(_ENVOY_PREFIX)]


def filter_name(element: Element) -> str:
    """What the element is called in the filter chain, and in the routes that switch it on."""
    return element.name if isinstance(element, PlannedNative) else f"{FILTER_NAME}/{element.name}"


def filter_names(chain: PlannedChain) -> list[str]:
    """The names of a chain's filters, in order."""
    return [filter_name(element) for element in chain.elements]


def http_filters(
    chains: Iterable[PlannedChain],
    authentication: Authentication | None = None,
    early: Iterable[HttpFilter] = (),
    scripts: Mapping[str, HttpFilter] = NO_SCRIPTS,
) -> list[HttpFilter]:
    """The filters of all chains, switched off until a route switches them on, between the two that guard our headers.

    Where clients must show who they are, that comes before all that is a chain's; then what is `early`. `scripts` are
    asked before the first segment of the chain that they are of.

    A native filter has no `typed_config` here: it is of a type that we need not know, and is added to the JSON
    (`native_configs`).
    """
    return [
        _named(
            "attache.clean_response", HeaderMutationFilter(mutations=Mutations(response_mutations=_REMOVE_INTERNAL))
        ),
        *authentication_filters(authentication),
        *early,
        *(each for source, plans in _by_source(chains).items() for each in _chain_filters(plans, scripts.get(source))),
        _named("attache.clean_request", _clean_request()),
        _named("envoy.filters.http.router", Router(suppress_envoy_headers=True)),
    ]


def _chain_filters(plans: Sequence[PlannedChain], script: HttpFilter | None) -> Iterator[HttpFilter]:
    """The filters of one chain: in each place, what its plans have there. They differ in their segments alone."""
    above = len(plans[0].above_hosted)
    for place, elements in enumerate(zip(*(chain.elements for chain in plans), strict=True)):
        if place == above and script is not None:
            yield script
        yield from {filter_name(element): _element_filter(element) for element in elements}.values()


def _by_source(chains: Iterable[PlannedChain]) -> Mapping[str, list[PlannedChain]]:
    plans: dict[str, list[PlannedChain]] = {}
    for chain in chains:
        plans.setdefault(chain.source, []).append(chain)
    return plans


def upstream_filters(api_key: ApiKey | None) -> list[HttpFilter]:
    """What every exchange with an inference server passes, and no other: the last filters that see its request, and the
    first that see its response."""
    told = Mutations(
        request_mutations=[] if api_key is None else [_bearer(api_key)],
        response_mutations=[_without(RESPONSE_HEADER_PREFIX)],
    )
    return [
        _named("attache.clean_answer", HeaderMutationFilter(mutations=told)),
        _named("envoy.filters.http.upstream_codec", UpstreamCodec()),
    ]


def native_configs(chains: Iterable[PlannedChain]) -> Mapping[str, Json]:
    """The configurations of native filters as the gateway file has them, by filter name."""
    return {
        element.name: element.typed_config
        for chain in chains
        for element in chain.elements
        if isinstance(element, PlannedNative)
    }


def forged_headers() -> TypedExtensionConfig:
    """Removes what a client has no business to send, before anything looks at the request."""
    return extension(
        "envoy.http.early_header_mutation.header_mutation", EarlyHeaderMutation(mutations=_REMOVE_INTERNAL)
    )


def _clean_request() -> HeaderMutationFilter:
    return HeaderMutationFilter(
        mutations=Mutations(request_mutations=_REMOVE_OURS, response_mutations=_REMOVE_INTERNAL)
    )


def _element_filter(element: Element) -> HttpFilter:
    name = filter_name(element)
    match element:
        case PlannedSegment():
            return HttpFilter(name, typed_config=packed(segment_filter(element)), disabled=True)
        case PlannedForeign():
            return HttpFilter(name, typed_config=packed(foreign_filter(element)), disabled=True)
        case PlannedNative():
            return HttpFilter(name, disabled=True)
    assert_never(element)


def _named(name: str, message: betterproto2.Message) -> HttpFilter:
    return HttpFilter(name=name, typed_config=packed(message))
