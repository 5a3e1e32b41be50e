"""Clusters: the workers, the inference servers, foreign ext_proc services, and the server of an issuer's keys."""

from __future__ import annotations

import ipaddress
from pathlib import Path

from envoy_data_plane.envoy.config.cluster.v3 import (
    CircuitBreakers,
    CircuitBreakersThresholds,
    Cluster,
    ClusterCommonLbConfig,
    ClusterDiscoveryType,
    ClusterLbPolicy,
    LoadBalancingPolicy,
    LoadBalancingPolicyPolicy,
    OutlierDetection,
)
from envoy_data_plane.envoy.config.core.v3 import (
    Address,
    HealthCheck,
    HealthCheckGrpcHealthCheck,
    Http1ProtocolOptions,
    Http2ProtocolOptions,
    KeepaliveSettings,
    TransportSocket,
    TypedExtensionConfig,
    UpstreamHttpProtocolOptions,
)
from envoy_data_plane.envoy.config.core.v3 import HttpProtocolOptions as CommonHttpOptions
from envoy_data_plane.envoy.config.endpoint.v3 import (
    ClusterLoadAssignment,
    Endpoint,
    LbEndpoint,
    LocalityLbEndpoints,
)
from envoy_data_plane.envoy.extensions.load_balancing_policies.least_request.v3 import (
    LeastRequest,
    LeastRequestSelectionMethod,
)
from envoy_data_plane.envoy.extensions.transport_sockets.tls.v3 import (
    CertificateValidationContext,
    CertificateValidationContextSystemRootCerts,
    CommonTlsContext,
    UpstreamTlsContext,
)
from envoy_data_plane.envoy.extensions.upstreams.http.v3 import (
    HttpProtocolOptions,
    HttpProtocolOptionsExplicitHttpConfig,
)
from envoy_data_plane.envoy.type.v3 import Percent

from attache_envoy.compile.authentication import JWKS_CLUSTER
from attache_envoy.compile.ext_proc import WORKERS_CLUSTER
from attache_envoy.compile.http_filters import upstream_filters
from attache_envoy.compile.messages import NO_LIMIT, packed, seconds, tcp_address, unix_address
from attache_envoy.compile.plan import PlannedForeign
from attache_envoy.compile.sockets import Sockets
from attache_envoy.gateway.model import Gateway
from attache_envoy.gateway.upstream import Upstream

_MAX_WAITING_FRAMES = 1_000_000

_HTTP_OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"


def upstream_cluster_name(name: str) -> str:
    """The cluster of an inference server."""
    return f"upstream/{name}"


def workers_cluster(gateway: Gateway, sockets: Sockets) -> Cluster:
    """The worker processes, one Unix socket each.

    A stream goes to the worker with the fewest, so they are spread evenly, and a worker that is stuck gets no more than
    the others have. A worker is asked for its health once a second and gets streams only while it is healthy; with none
    healthy, requests fail at once (no panic routing). An ext_proc stream lives as long as its response, so the circuit
    breaker is wide.
    """
    return Cluster(
        name=WORKERS_CLUSTER,
        type=ClusterDiscoveryType.STATIC,
        load_balancing_policy=_fewest_streams(),
        connect_timeout=seconds(gateway.timeouts.worker_connect_s),
        load_assignment=_endpoints(WORKERS_CLUSTER, *(unix_address(sockets.worker(i)) for i in range(gateway.workers))),
        health_checks=[_health_check()],
        outlier_detection=_ejected_when_lost(),
        # No panic routing, and a change of health counts at once: Envoy would gather such changes for a second.
        common_lb_config=ClusterCommonLbConfig(healthy_panic_threshold=Percent(value=0), update_merge_window=NO_LIMIT),
        circuit_breakers=_circuit_breakers(gateway.limits.max_streams),
        typed_extension_protocol_options={_HTTP_OPTIONS: packed(_http2())},
    )


def _fewest_streams() -> LoadBalancingPolicy:
    """Of all, not of two that are drawn, which Envoy's LEAST_REQUEST looks at: it may draw the same one twice."""
    fewest = LeastRequest(selection_method=LeastRequestSelectionMethod.FULL_SCAN)
    policy = TypedExtensionConfig(name="envoy.load_balancing_policies.least_request", typed_config=packed(fewest))
    return LoadBalancingPolicy(policies=[LoadBalancingPolicyPolicy(typed_extension_config=policy)])


def upstream_cluster(name: str, upstream: Upstream) -> Cluster:
    """An inference server. HTTP/1.1: what vLLM and llama.cpp speak."""
    return _server_cluster(upstream_cluster_name(name), upstream)


def jwks_cluster(server: Upstream) -> Cluster:
    """Where the keys are that tokens are verified with."""
    return _server_cluster(JWKS_CLUSTER, server)


def _server_cluster(cluster: str, upstream: Upstream) -> Cluster:
    return Cluster(
        name=cluster,
        type=ClusterDiscoveryType.STATIC if upstream.is_ip_address else ClusterDiscoveryType.STRICT_DNS,
        lb_policy=ClusterLbPolicy.LEAST_REQUEST,
        connect_timeout=seconds(upstream.connect_timeout_s),
        load_assignment=_endpoints(cluster, tcp_address(upstream.host, upstream.port)),
        circuit_breakers=_circuit_breakers(upstream.max_requests),
        transport_socket=_tls(upstream) if upstream.tls else None,
        typed_extension_protocol_options={_HTTP_OPTIONS: packed(_http1(upstream))},
    )


def foreign_cluster(gateway: Gateway, element: PlannedForeign) -> Cluster:
    """A foreign ext_proc service."""
    address, is_name = _foreign_address(element.service.address)
    return Cluster(
        name=element.name,
        type=ClusterDiscoveryType.STRICT_DNS if is_name else ClusterDiscoveryType.STATIC,
        connect_timeout=seconds(gateway.timeouts.worker_connect_s),
        load_assignment=_endpoints(element.name, address),
        circuit_breakers=_circuit_breakers(gateway.limits.max_streams),
        typed_extension_protocol_options={_HTTP_OPTIONS: packed(_http2())},
    )


def _foreign_address(text: str) -> tuple[Address, bool]:
    if text.startswith("unix:"):
        return unix_address(Path(text.removeprefix("unix:"))), False
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return tcp_address(host, int(port)), True
    return tcp_address(host, int(port)), False


def _endpoints(cluster: str, *addresses: Address) -> ClusterLoadAssignment:
    endpoints = [LbEndpoint(endpoint=Endpoint(address=address)) for address in addresses]
    return ClusterLoadAssignment(cluster_name=cluster, endpoints=[LocalityLbEndpoints(lb_endpoints=endpoints)])


def _circuit_breakers(limit: int) -> CircuitBreakers:
    return CircuitBreakers(
        thresholds=[
            CircuitBreakersThresholds(
                max_connections=limit, max_pending_requests=limit, max_requests=limit, max_retries=limit
            )
        ]
    )


def _health_check() -> HealthCheck:
    """A dead worker fails it at once; a busy one may take its time."""
    return HealthCheck(
        timeout=seconds(10),
        interval=seconds(1),
        unhealthy_interval=seconds(0.2),
        no_traffic_interval=seconds(0.2),
        no_traffic_healthy_interval=seconds(1),
        unhealthy_threshold=1,
        healthy_threshold=1,
        grpc_health_check=HealthCheckGrpcHealthCheck(),
    )


def _ejected_when_lost() -> OutlierDetection:
    """Between two health checks: a worker that resets a stream or refuses a connection gets no more for a second.

    Never the last one, and never for an answer that it gave, whatever its status.
    """
    return OutlierDetection(
        split_external_local_origin_errors=True,
        consecutive_local_origin_failure=1,
        enforcing_consecutive_local_origin_failure=100,
        enforcing_local_origin_success_rate=0,
        enforcing_consecutive_5xx=0,
        enforcing_consecutive_gateway_failure=0,
        enforcing_success_rate=0,
        interval=seconds(1),
        base_ejection_time=seconds(1),
        max_ejection_time=seconds(1),
        max_ejection_percent=99,
    )


def _http2() -> HttpProtocolOptions:
    """Many clients share a connection, so what some of them do must not end it.

    Envoy gives up a connection on which too many frames wait to be written: by default 10,000, or 1,000 without bodies
    and headers. A thousand clients that leave while a worker is busy are as many. What waits is bounded all the same:
    bodies by the windows, and the time by the ping.
    """
    return HttpProtocolOptions(
        explicit_http_config=HttpProtocolOptionsExplicitHttpConfig(
            http2_protocol_options=Http2ProtocolOptions(
                connection_keepalive=KeepaliveSettings(interval=seconds(30), timeout=seconds(10)),
                max_outbound_frames=_MAX_WAITING_FRAMES,
                max_outbound_control_frames=_MAX_WAITING_FRAMES,
            )
        )
    )


def _http1(upstream: Upstream) -> HttpProtocolOptions:
    return HttpProtocolOptions(
        common_http_protocol_options=CommonHttpOptions(idle_timeout=seconds(upstream.keepalive_s)),
        explicit_http_config=HttpProtocolOptionsExplicitHttpConfig(http_protocol_options=Http1ProtocolOptions()),
        upstream_http_protocol_options=UpstreamHttpProtocolOptions(auto_sni=True, auto_san_validation=True)
        if upstream.tls and not upstream.is_ip_address
        else None,
        http_filters=upstream_filters(upstream.api_key),
    )


def _tls(upstream: Upstream) -> TransportSocket:
    validation = CertificateValidationContext(system_root_certs=CertificateValidationContextSystemRootCerts())
    return TransportSocket(
        name="envoy.transport_sockets.tls",
        typed_config=packed(
            UpstreamTlsContext(
                sni="" if upstream.is_ip_address else upstream.host,
                common_tls_context=CommonTlsContext(validation_context=validation),
            )
        ),
    )
