"""Serves segments to Envoy over grpc.aio: transport only, one `SegmentHost` per stream.

The segment of a stream is named by its invocation metadata, so that one address serves every ext_proc filter of a
gateway. gRPC's own limits are off: the host counts bytes. That a stream ends by cancellation is Envoy's normal way.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeAlias

import grpc
import structlog
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from attache_filters.extproc.headers import SEGMENT_METADATA_KEY
from attache_filters.extproc.host import SegmentHost
from attache_filters.extproc.segment import Segment
from attache_filters.extproc.stream_end import StreamEndedError
from attache_filters.extproc.wire import ext_proc_pb2 as pb

SERVICE = "envoy.service.ext_proc.v3.ExternalProcessor"
METHOD = "Process"

DEFAULT_GRACE_S = 30.0
"""How long exchanges under way may take to end once the server is to stop; then they are cancelled."""

_UNLIMITED = -1
_OPTIONS = (
    ("grpc.max_receive_message_length", _UNLIMITED),
    ("grpc.max_send_message_length", _UNLIMITED),
    # Envoy may ping as often as it likes, also between requests: a GOAWAY would end every exchange of a connection.
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 1000),
    ("grpc.http2.max_ping_strikes", 0),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.so_reuseport", 0),
)

_Context: TypeAlias = "grpc.aio.ServicerContext[pb.ProcessingRequest, pb.ProcessingResponse]"

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server that accepts streams. `address` is what Envoy connects to; a port of 0 was replaced by the real one."""

    address: str


@asynccontextmanager
async def running_server(
    address: str, segments: Mapping[str, Segment], *, grace_s: float = DEFAULT_GRACE_S
) -> AsyncIterator[RunningServer]:
    """Serve `segments`, by name, until the block ends.

    At the end the health service says NOT_SERVING, no stream is accepted any more, and those under way may take
    `grace_s` seconds.

    Args:
        address: `unix:/path`, or `host:port`.

    Raises:
        OSError: the address cannot be used.
    """
    server = grpc.aio.server(options=_OPTIONS)
    health_servicer = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(health_servicer, server)
    server.add_generic_rpc_handlers((_rpc_handler(segments),))
    bound = _bind(server, address)
    await server.start()
    await health_servicer.set(SERVICE, health_pb2.HealthCheckResponse.SERVING)
    try:
        yield RunningServer(bound)
    finally:
        await health_servicer.enter_graceful_shutdown()
        await server.stop(grace_s)


def _bind(server: grpc.aio.Server, address: str) -> str:
    try:
        port = server.add_insecure_port(address)
    except RuntimeError as error:
        raise OSError(f"Cannot listen on {address}.") from error
    if address.startswith("unix:"):
        return address
    return f"{address.rpartition(':')[0]}:{port}"


def _rpc_handler(segments: Mapping[str, Segment]) -> grpc.GenericRpcHandler:
    async def process(_: AsyncIterator[pb.ProcessingRequest], context: _Context) -> None:
        name = _segment_name(context)
        segment = segments.get(name)
        if segment is None:
            log.error("a stream for an unknown segment", segment=name, known=sorted(segments))
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, f"There is no segment {name!r}.")
        await _serve(segment, context)

    method = grpc.stream_stream_rpc_method_handler(
        process,
        request_deserializer=pb.ProcessingRequest.FromString,
        response_serializer=pb.ProcessingResponse.SerializeToString,
    )
    return grpc.method_handlers_generic_handler(SERVICE, {METHOD: method})


async def _serve(segment: Segment, context: _Context) -> None:
    try:
        await SegmentHost(segment, _GrpcStream(context)).run()
    except Exception:
        # The edge: a stream that cannot go on ends alone.
        log.exception("an exchange was broken off", segment=segment.name)
        await context.abort(grpc.StatusCode.INTERNAL, "The exchange was broken off.")


def _segment_name(context: _Context) -> str:
    for key, value in context.invocation_metadata() or ():
        if key == SEGMENT_METADATA_KEY:
            return value if isinstance(value, str) else value.decode(errors="replace")
    return ""


class _GrpcStream:
    """The server's end of one stream."""

    def __init__(self, context: _Context) -> None:
        self._context = context

    async def read(self) -> pb.ProcessingRequest | None:
        try:
            message: object = await self._context.read()
        except grpc.aio.BaseError:
            return None
        return message if isinstance(message, pb.ProcessingRequest) else None

    async def write(self, message: pb.ProcessingResponse) -> None:
        try:
            await self._context.write(message)
        except grpc.aio.BaseError as error:
            raise StreamEndedError("a message was written") from error
