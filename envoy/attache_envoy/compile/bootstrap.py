"""A gateway as the bootstrap configuration of one Envoy. Pure: a value in, JSON out."""

from __future__ import annotations

import re

import yaml
from envoy_data_plane.envoy.config.bootstrap.v3 import Admin, Bootstrap, BootstrapStaticResources
from envoy_data_plane.envoy.config.cluster.v3 import Cluster
from envoy_data_plane.envoy.config.core.v3 import Node
from envoy_data_plane.envoy.config.overload.v3 import OverloadManager, ResourceMonitor
from envoy_data_plane.envoy.extensions.resource_monitors.downstream_connections.v3 import DownstreamConnectionsConfig

from attache_core.json_codec import Json
from attache_envoy.compile.clusters import foreign_cluster, jwks_cluster, upstream_cluster, workers_cluster
from attache_envoy.compile.listeners import gateway_listener, loop_listener
from attache_envoy.compile.messages import OWNER_ONLY, as_json, packed, unix_address
from attache_envoy.compile.plan import Plan, PlannedForeign
from attache_envoy.compile.sockets import Sockets
from attache_envoy.gateway.model import Gateway


class _PlainDumper(yaml.SafeDumper):
    """Writes a value that occurs twice in both places, without anchors."""

    def ignore_aliases(self, data: object) -> bool:
        return True


# Envoy's reader takes these for booleans as well, PyYAML does not: written so that both read texts, in quotes.
_PlainDumper.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("[yYnN]$"), list("yYnN"))


def compile_bootstrap(gateway: Gateway, plan: Plan, sockets: Sockets) -> Json:
    """An Envoy v3 bootstrap as JSON, with Envoy's field names.

    Args:
        gateway: a checked gateway.
        plan: `plan(gateway)`.
        sockets: where Envoy finds the workers, and where it opens the admin endpoint and the loop listeners.

    Raises:
        ConfigError: a socket's path is too long.
    """
    bootstrap = as_json(
        Bootstrap(
            node=Node(id="attache", cluster="attache"),
            admin=Admin(address=unix_address(sockets.admin, mode=OWNER_ONLY), ignore_global_conn_limit=True),
            static_resources=BootstrapStaticResources(clusters=_clusters(gateway, plan, sockets)),
            overload_manager=_connection_limit(gateway),
        )
    )
    loops = [loop_listener(gateway, segment, below, sockets) for segment, below in plan.loops]
    bootstrap["static_resources"]["listeners"] = [gateway_listener(gateway, plan), *loops]
    return bootstrap


def render(bootstrap: Json) -> str:
    """The bootstrap as YAML that Envoy reads."""
    return yaml.dump(bootstrap, Dumper=_PlainDumper, sort_keys=False, allow_unicode=True, width=120)


def _clusters(gateway: Gateway, plan: Plan, sockets: Sockets) -> list[Cluster]:
    jwt = gateway.authentication and gateway.authentication.jwt
    issuer = jwt and jwt.jwks_server
    foreign = {
        element.name: element
        for chain in plan.chains
        for element in chain.elements
        if isinstance(element, PlannedForeign)
    }
    return [
        workers_cluster(gateway, sockets),
        *(upstream_cluster(name, upstream) for name, upstream in gateway.upstreams.items()),
        *(foreign_cluster(gateway, element) for element in foreign.values()),
        *([jwks_cluster(issuer)] if issuer else []),
    ]


def _connection_limit(gateway: Gateway) -> OverloadManager:
    limit = DownstreamConnectionsConfig(max_active_downstream_connections=gateway.limits.max_connections)
    monitor = ResourceMonitor(
        name="envoy.resource_monitors.global_downstream_max_connections", typed_config=packed(limit)
    )
    return OverloadManager(resource_monitors=[monitor])
