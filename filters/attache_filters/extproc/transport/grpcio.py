"""The transport of gRPC's own Python library, grpc.aio.

gRPC's own limits are off: the host counts bytes. That a stream ends by cancellation is Envoy's normal way.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TypeAlias

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from attache_filters.extproc.headers import SEGMENT_METADATA_KEY
from attache_filters.extproc.segment import Segment
from attache_filters.extproc.stream_end import StreamEndedError
from attache_filters.extproc.transport.exchange import METHOD, SERVICE, serve_exchange
from attache_filters.extproc.transport.rpc import RpcError
from attache_filters.extproc.wire import ext_proc_pb2 as pb

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

_STATUS: Mapping[int, grpc.StatusCode] = {status.value[0]: status for status in grpc.StatusCode}


@asynccontextmanager
async def serving_grpcio(address: str, segments: Mapping[str, Segment], grace_s: float) -> AsyncIterator[str]:
    """See `running_server`. Yields the address that it listens on."""
    server = grpc.aio.server(options=_OPTIONS)
    health_servicer = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(health_servicer, server)
    server.add_generic_rpc_handlers((_rpc_handler(segments),))
    bound = _bind(server, address)
    await server.start()
    await health_servicer.set(SERVICE, health_pb2.HealthCheckResponse.SERVING)
    try:
        yield bound
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
        try:
            await serve_exchange(segments, _segment_name(context), _GrpcStream(context))
        except RpcError as error:
            await context.abort(_STATUS[error.code], error.message)

    method = grpc.stream_stream_rpc_method_handler(
        process,
        request_deserializer=pb.ProcessingRequest.FromString,
        response_serializer=pb.ProcessingResponse.SerializeToString,
    )
    return grpc.method_handlers_generic_handler(SERVICE, {METHOD: method})


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
