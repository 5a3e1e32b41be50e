"""Routes: which chain and which upstream a request gets.

Every filter of every chain stands in one listener, switched off; a route to a chain switches on exactly the chain's
filters. The other way round, what Envoy answers before there is a route (a malformed request, headers that are too
large) would pass every filter, and Envoy closes the connection before they let the answer through.

A turn may be silent for as long as its later rounds and tools take: on a route to a chain no timer runs for the
exchange with the client, and only the inference server's silence is bounded, while it owes an answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from envoy_data_plane.envoy.config.route.v3 import (
    DirectResponseAction,
    FilterConfig,
    HeaderMatcher,
    RetryPolicy,
    Route,
    RouteAction,
    RouteConfiguration,
    RouteMatch,
    VirtualHost,
)
from envoy_data_plane.envoy.extensions.filters.http.ext_proc.v3 import ExtProcPerRoute
from envoy_data_plane.envoy.type.matcher.v3 import (
    MetadataMatcher,
    RegexMatchAndSubstitute,
    RegexMatcher,
    StringMatcher,
)
from envoy_data_plane.google.protobuf import Any as AnyMessage

from attache_core.errors import ClientError, error_body
from attache_core.turn.round import UPSTREAM_REQUEST_ID
from attache_envoy.compile.authentication import open_to_all
from attache_envoy.compile.clusters import upstream_cluster_name
from attache_envoy.compile.http_filters import filter_name, filter_names
from attache_envoy.compile.messages import NO_LIMIT, header, json_text, packed, seconds, unspecified
from attache_envoy.compile.models import MODEL_FILTER, has_model, names_model
from attache_envoy.compile.plan import Plan, PlannedChain, PlannedSegment
from attache_envoy.compile.stateless import bypass_filter_name, is_stateless
from attache_envoy.gateway.model import Gateway, Match
from attache_envoy.gateway.model import Route as GatewayRoute

CONNECT_ATTEMPTS = 2
"""Retries of a connection that was not made. Nothing else is retried: a body may have been sent by then."""


def gateway_routes(gateway: Gateway, plan: Plan) -> RouteConfiguration:
    """The routes of the listener that clients use: what Envoy answers itself, then the gateway file's routes."""
    health = _answered("health", RouteMatch(path="/health"), 200, {"status": "ok"})
    health.typed_per_filter_config = open_to_all(gateway.authentication)
    routes = [health, _upgrade_refused()]
    for route in gateway.routes:
        routes += _routes_of(gateway, plan, route)
    not_found = error_body(ClientError("There is nothing at this path.", code="not_found"))
    routes.append(_answered("not_found", RouteMatch(prefix="/"), 404, not_found))
    return _configuration("gateway", routes)


def _routes_of(gateway: Gateway, plan: Plan, route: GatewayRoute) -> Iterator[Route]:
    """A route of the gateway file, in each of the ways that it may lead.

    Envoy makes a request's filters when it first chooses a route. What its body says is not known then, so that route
    is the last one here, and switches on what any of the others might need.
    """
    if not gateway.chooses_by_model(route):
        yield from _ways(gateway, plan, route, None, [])
        return
    yield _compressed_refused(route)
    for choice in gateway.choices(route):
        if choice.model is None and gateway.knows_all_models:
            yield _model_not_found(plan, choice.route)
        for way in _ways(gateway, plan, choice.route, choice.model, _plans(plan, choice.route)):
            way.typed_per_filter_config[MODEL_FILTER] = _on()
            way.request_body_buffer_limit = gateway.limits.max_request_bytes
            yield way


def _plans(plan: Plan, route: GatewayRoute) -> tuple[PlannedChain, ...]:
    """What a route's chain is planned as, for whichever upstream."""
    return tuple(chain for chain in plan.chains if chain.source == route.chain)


def _ways(
    gateway: Gateway, plan: Plan, route: GatewayRoute, model: str | None, others: Sequence[PlannedChain]
) -> Iterator[Route]:
    """The route for requests of a model (None: of any): past its chain, where it may be bypassed, and through it."""
    chain = plan.chain_of(gateway, route)
    facts = [] if model is None else [has_model(model)]
    if route.bypass is not None and chain is not None:
        bypassed = _forwarded(gateway, route, _route_match(route.match, [*facts, is_stateless()]), chain, 0)
        bypassed.name = _name(route, model, "stateless")
        bypassed.stat_prefix = "stateless"
        bypassed.typed_per_filter_config = _switches([chain, *others], None)
        yield bypassed
    idle_s = gateway.timeouts.stream_idle_s if chain is None else 0
    forwarded = _forwarded(gateway, route, _route_match(route.match, facts), chain, idle_s)
    forwarded.name = _name(route, model)
    if chain is not None:
        forwarded.typed_per_filter_config = _switches([chain, *others], chain)
        forwarded.typed_per_filter_config |= {bypass_filter_name(chain): _on()} if route.bypass else {}
    if route.asks_readiness:
        forwarded.typed_per_filter_config |= open_to_all(gateway.authentication)
    yield forwarded


def _name(route: GatewayRoute, *facts: str | None) -> str:
    return " ".join([route.chain or "upstream", route.match.path or route.match.prefix or "", *filter(None, facts)])


def loop_routes(gateway: Gateway, segment: str, chain: PlannedChain) -> RouteConfiguration:
    """The routes of a loop listener: those that lead to its chain; any other path goes where the first of them goes.

    The filters above may have changed the path, and the exchange that Envoy holds for them keeps its route as well.
    """
    choices = [choice.route for route in gateway.routes for choice in gateway.choices(route)]
    leading = list({route.match: route for route in choices if chain.serves(gateway, route)}.values())
    matches = [(route, _route_match(route.match)) for route in leading] + [(leading[0], RouteMatch(prefix="/"))]
    silence_s = max(gateway.upstreams[name].silence_s for name in chain.upstreams)
    idle_s = 0 if chain.has_loop else silence_s + gateway.timeouts.stream_idle_s
    routes = [_forwarded(gateway, route, match, chain, idle_s) for route, match in matches]
    return _configuration(f"loop/{segment}", routes)


def _configuration(name: str, routes: list[Route]) -> RouteConfiguration:
    return RouteConfiguration(name=name, virtual_hosts=[VirtualHost(name=name, domains=["*"], routes=routes)])


def _route_match(match: Match, facts: Sequence[MetadataMatcher] = ()) -> RouteMatch:
    """The requests that a route takes; `facts` are what is known of their bodies."""
    matched = _path_match(match)
    matched.dynamic_metadata = list(facts)
    return matched


def _path_match(match: Match) -> RouteMatch:
    headers = _method_matchers(match.methods)
    if match.prefix == "/":
        return RouteMatch(prefix="/", headers=headers)
    if match.prefix is not None:
        return RouteMatch(path_separated_prefix=match.prefix, headers=headers)
    path = match.path or "/"
    if "{" not in path:
        return RouteMatch(path=path, headers=headers)
    parts = re.split(r"(\{[^{}/]*\})", path)
    pattern = "".join("[^/]+" if part.startswith("{") else re.escape(part) for part in parts)
    return RouteMatch(safe_regex=RegexMatcher(regex=pattern), headers=headers)


def _method_matchers(methods: tuple[str, ...]) -> list[HeaderMatcher]:
    if not methods:
        return []
    pattern = RegexMatcher(regex="|".join(methods))
    return [HeaderMatcher(name=":method", string_match=StringMatcher(safe_regex=pattern))]


def _forwarded(
    gateway: Gateway, route: GatewayRoute, match: RouteMatch, chain: PlannedChain | None, idle_s: float
) -> Route:
    name = gateway.upstream_of(route)
    upstream = gateway.upstreams[name]
    return Route(
        name=f"{route.chain or 'upstream'} {route.match.path or route.match.prefix}",
        match=match,
        route=RouteAction(
            cluster=upstream_cluster_name(name),
            host_rewrite_literal=upstream.authority,
            regex_rewrite=_prefixed(upstream.prefix),
            timeout=NO_LIMIT,
            idle_timeout=seconds(idle_s),
            retry_policy=RetryPolicy(
                retry_on="connect-failure,refused-stream",
                num_retries=CONNECT_ATTEMPTS,
                per_try_idle_timeout=None if chain is None else seconds(upstream.silence_s),
            ),
        ),
        # What we read must not come compressed; what merely passes may.
        request_headers_to_add=[] if chain is None else [header("accept-encoding", "identity")],
        # Before Envoy puts the id that the gateway goes by in its place.
        response_headers_to_add=[header(UPSTREAM_REQUEST_ID, "%RESP(x-request-id)%")],
        typed_per_filter_config={} if chain is None else _switches([chain], chain),
    )


def _compressed_refused(route: GatewayRoute) -> Route:
    """Envoy reads the model from the body as it comes."""
    message = "The body is read to choose an inference server by its model: send it without a content encoding."
    error = ClientError(message, http_status=415, code="unsupported_content_encoding")
    match = _route_match(route.match)
    identity = StringMatcher(exact="identity", ignore_case=True)
    match.headers += [
        HeaderMatcher(name="content-encoding", present_match=True),
        HeaderMatcher(name="content-encoding", string_match=identity, invert_match=True),
    ]
    return _answered("compressed", match, 415, error_body(error))


def _model_not_found(plan: Plan, route: GatewayRoute) -> Route:
    """Says nothing of the models that there are: not every client may know of every one."""
    message = "The model does not exist: no inference server here has the one that 'model' names."
    error = ClientError(message, http_status=404, code="model_not_found", param="model")
    answered = _answered("model_not_found", _route_match(route.match, [names_model()]), 404, error_body(error))
    answered.typed_per_filter_config = _switches(_plans(plan, route), None)
    return answered


def _prefixed(prefix: str) -> RegexMatchAndSubstitute | None:
    if not prefix:
        return None
    literal = prefix.replace("\\", "\\\\")
    return RegexMatchAndSubstitute(pattern=RegexMatcher(regex="^/"), substitution=f"{literal}/")


def _answered(name: str, match: RouteMatch, status: int, body: object) -> Route:
    return Route(
        name=name,
        match=match,
        direct_response=DirectResponseAction(status=status, body=json_text(body)),
        response_headers_to_add=[header("content-type", "application/json")],
    )


def _upgrade_refused() -> Route:
    """Clients that prefer WebSocket fall back to HTTP on 426; through ext_proc an upgrade would hang."""
    upgrade = HeaderMatcher(name="upgrade", string_match=StringMatcher(exact="websocket", ignore_case=True))
    message = "WebSocket is not offered here: send the request as an HTTP POST."
    body = error_body(ClientError(message, code="upgrade_required"))
    return _answered("upgrade", RouteMatch(prefix="/", headers=[upgrade]), 426, body)


def _switches(chains: Iterable[PlannedChain], through: PlannedChain | None) -> dict[str, AnyMessage]:
    """What a route says to the filters of these chains: all are there, and segments do nothing but in `through`."""
    elements = {filter_name(element): element for chain in chains for element in chain.elements}
    own = set() if through is None else set(filter_names(through))
    idle = {name for name, element in elements.items() if isinstance(element, PlannedSegment) and name not in own}
    return {name: _skipping() if name in idle else _on() for name in elements}


def _on() -> AnyMessage:
    return packed(FilterConfig(config=unspecified()))


def _skipping() -> AnyMessage:
    """An ext_proc filter that is there and asks its service nothing."""
    return packed(FilterConfig(config=packed(ExtProcPerRoute(disabled=True))))
