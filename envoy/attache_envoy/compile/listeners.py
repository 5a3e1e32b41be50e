"""Listeners: the one that clients use, and one for each segment that may call below again."""

from __future__ import annotations

from collections.abc import Sequence

from envoy_data_plane.envoy.config.core.v3 import Address, TrafficDirection
from envoy_data_plane.envoy.config.listener.v3 import (
    Filter,
    FilterChain,
    Listener,
    ListenerConnectionBalanceConfig,
    ListenerConnectionBalanceConfigExactBalance,
)
from envoy_data_plane.envoy.config.route.v3 import RouteConfiguration
from envoy_data_plane.envoy.extensions.filters.network.http_connection_manager.v3 import (
    HttpConnectionManager,
    HttpConnectionManagerPathWithEscapedSlashesAction,
    HttpConnectionManagerUpgradeConfig,
)

from attache_core.json_codec import Json
from attache_envoy.compile.http_filters import forged_headers, http_filters, native_configs
from attache_envoy.compile.local_replies import local_replies
from attache_envoy.compile.messages import NO_LIMIT, OWNER_ONLY, as_json, packed, seconds, tcp_address, unix_address
from attache_envoy.compile.models import model_filter
from attache_envoy.compile.plan import Plan, PlannedChain, PlannedSegment
from attache_envoy.compile.routes import gateway_routes, loop_routes
from attache_envoy.compile.sockets import Sockets
from attache_envoy.compile.stateless import bypass_filter
from attache_envoy.gateway.model import Gateway

GATEWAY_LISTENER = "gateway"


def gateway_listener(gateway: Gateway, plan: Plan) -> Json:
    """The listener that clients use: the edge, which trusts nothing that a request says about itself."""
    manager = _connection_manager(gateway, GATEWAY_LISTENER, plan.chains, gateway_routes(gateway, plan))
    early = [model_filter()] if any(map(gateway.chooses_by_model, gateway.routes)) else []
    scripts = {chain.source: bypass_filter(gateway, chain) for chain in plan.bypassed(gateway)}
    manager.http_filters = http_filters(plan.chains, gateway.authentication, early=early, scripts=scripts)
    manager.use_remote_address = True
    manager.request_timeout = seconds(gateway.timeouts.request_s)
    manager.early_header_mutation_extensions = [forged_headers()]
    # Switched on so that the request reaches its route, which refuses it; Envoy's own refusal is 403.
    manager.upgrade_configs = [HttpConnectionManagerUpgradeConfig(upgrade_type="websocket")]
    listener = _listener(gateway, GATEWAY_LISTENER, tcp_address(*gateway.address), manager)
    # Draining closes inbound listeners only: a turn under way still needs its loop listeners.
    listener.traffic_direction = TrafficDirection.INBOUND
    # One socket for all Envoy threads: a port that is in use is an error then, never shared with another gateway.
    listener.enable_reuse_port = False
    listener.connection_balance_config = ListenerConnectionBalanceConfig(
        exact_balance=ListenerConnectionBalanceConfigExactBalance()
    )
    return _with_native_filters(as_json(listener), plan.chains)


def loop_listener(gateway: Gateway, segment: PlannedSegment, below: PlannedChain, sockets: Sockets) -> Json:
    """The listener whose chain is what stands below a segment. Only our workers can connect to it."""
    name = f"loop/{segment.name}"
    manager = _connection_manager(gateway, name, [below], loop_routes(gateway, segment.name, below))
    manager.use_remote_address = False
    manager.skip_xff_append = True
    # Our workers read what they are sent: the end of an answer that broke off must not be kept from them.
    manager.delayed_close_timeout = NO_LIMIT
    address = unix_address(sockets.loop(segment.name), mode=OWNER_ONLY)
    listener = _listener(gateway, name, address, manager)
    # A client's turn under way must not starve because new clients have used up the connections.
    listener.ignore_global_conn_limit = True
    return _with_native_filters(as_json(listener), [below])


def _connection_manager(
    gateway: Gateway, name: str, chains: Sequence[PlannedChain], routes: RouteConfiguration
) -> HttpConnectionManager:
    return HttpConnectionManager(
        stat_prefix=name,
        route_config=routes,
        http_filters=http_filters(chains),
        stream_idle_timeout=seconds(gateway.timeouts.stream_idle_s),
        # Said by name, because a route's idle timeout of 0 would switch it off as well.
        stream_flush_timeout=seconds(gateway.timeouts.stream_idle_s),
        request_headers_timeout=seconds(gateway.timeouts.request_headers_s),
        max_request_headers_kb=gateway.limits.max_header_kib,
        generate_request_id=True,
        # A client that names its request finds it by that name, wherever it connects from.
        preserve_external_request_id=True,
        always_set_request_id_in_response=True,
        normalize_path=True,
        merge_slashes=True,
        path_with_escaped_slashes_action=HttpConnectionManagerPathWithEscapedSlashesAction.REJECT_REQUEST,
        local_reply_config=local_replies(),
    )


def _listener(gateway: Gateway, name: str, address: Address, manager: HttpConnectionManager) -> Listener:
    network_filter = Filter(name="envoy.filters.network.http_connection_manager", typed_config=packed(manager))
    return Listener(
        name=name,
        stat_prefix=name,
        address=address,
        per_connection_buffer_limit_bytes=gateway.limits.connection_buffer_bytes,
        filter_chains=[FilterChain(filters=[network_filter])],
    )


def _with_native_filters(listener: Json, chains: Sequence[PlannedChain]) -> Json:
    configs = native_configs(chains)
    for http_filter in listener["filter_chains"][0]["filters"][0]["typed_config"]["http_filters"]:
        if http_filter["name"] in configs:
            http_filter["typed_config"] = configs[http_filter["name"]]
    return listener
