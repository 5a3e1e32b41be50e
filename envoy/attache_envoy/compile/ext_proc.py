"""ext_proc filters of the chain: those of our segments, and those of foreign services.

Knows what Envoy needs for a service that holds, rewrites and originates bodies: both bodies in FULL_DUPLEX_STREAMED,
headers and trailers sent, no failure let through, no mode overrides. Source: the ext_proc filter's documentation
(envoy.extensions.filters.http.ext_proc.v3).
"""

from __future__ import annotations

from envoy_data_plane.envoy.config.common.mutation_rules.v3 import HeaderMutationRules
from envoy_data_plane.envoy.config.core.v3 import GrpcService, GrpcServiceEnvoyGrpc, HeaderValue
from envoy_data_plane.envoy.extensions.filters.http.ext_proc.v3 import (
    ExternalProcessor,
    ExternalProcessorRouteCacheAction,
    ProcessingMode,
    ProcessingModeBodySendMode,
    ProcessingModeHeaderSendMode,
)
from envoy_data_plane.envoy.type.v3 import HttpStatus, StatusCode

from attache_envoy.compile.messages import NO_LIMIT, seconds
from attache_envoy.compile.plan import PlannedForeign, PlannedSegment
from attache_envoy.gateway.entries import ProcessingMode as ForeignMode
from attache_filters.extproc.headers import SEGMENT_METADATA_KEY

WORKERS_CLUSTER = "workers"
FILTER_NAME = "envoy.filters.http.ext_proc"

_SEND = ProcessingModeHeaderSendMode.SEND
_DUPLEX = ProcessingModeBodySendMode.FULL_DUPLEX_STREAMED
_EVERYTHING = ProcessingMode(
    request_header_mode=_SEND,
    response_header_mode=_SEND,
    request_body_mode=_DUPLEX,
    response_body_mode=_DUPLEX,
    request_trailer_mode=_SEND,
    response_trailer_mode=_SEND,
)


def segment_filter(segment: PlannedSegment) -> ExternalProcessor:
    """The filter that hands an exchange to a segment; the stream's metadata says to which."""
    return ExternalProcessor(
        grpc_service=GrpcService(
            envoy_grpc=GrpcServiceEnvoyGrpc(cluster_name=WORKERS_CLUSTER),
            timeout=NO_LIMIT,
            initial_metadata=[HeaderValue(key=SEGMENT_METADATA_KEY, value=segment.name)],
        ),
        stat_prefix=segment.name,
        processing_mode=_EVERYTHING,
        mutation_rules=HeaderMutationRules(allow_all_routing=True),
        route_cache_action=ExternalProcessorRouteCacheAction.RETAIN,
        status_on_error=HttpStatus(code=StatusCode.ServiceUnavailable),
    )


def foreign_filter(element: PlannedForeign) -> ExternalProcessor:
    """The filter that hands an exchange to a foreign service, whose cluster has the element's name."""
    service = element.service
    return ExternalProcessor(
        grpc_service=GrpcService(
            envoy_grpc=GrpcServiceEnvoyGrpc(cluster_name=element.name),
            timeout=NO_LIMIT,
        ),
        stat_prefix=element.name,
        processing_mode=_foreign_mode(service.processing_mode),
        message_timeout=seconds(service.message_timeout_s),
        failure_mode_allow=service.failure_mode_allow,
        mutation_rules=HeaderMutationRules(allow_all_routing=service.allow_routing_headers),
        route_cache_action=ExternalProcessorRouteCacheAction.RETAIN,
        status_on_error=HttpStatus(code=StatusCode.ServiceUnavailable),
    )


def _foreign_mode(mode: ForeignMode) -> ProcessingMode:
    headers, bodies = ProcessingModeHeaderSendMode, ProcessingModeBodySendMode
    return ProcessingMode(
        request_header_mode=headers[mode.request_header_mode],
        response_header_mode=headers[mode.response_header_mode],
        request_body_mode=bodies[mode.request_body_mode],
        response_body_mode=bodies[mode.response_body_mode],
        request_trailer_mode=headers[mode.request_trailer_mode],
        response_trailer_mode=headers[mode.response_trailer_mode],
    )
