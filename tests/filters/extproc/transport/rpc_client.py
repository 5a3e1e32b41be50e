"""A gRPC client made with gRPC's own library, for servers of either transport."""

from __future__ import annotations

from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from attache_filters.extproc.transport.exchange import SERVICE
from attache_filters.extproc.wire import ext_proc_pb2 as pb
from filters.extproc.hosting import WAIT_S

PROCESS = f"/{SERVICE}/Process"
UNLIMITED = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]


def open_channel(address: str, **options: Any) -> grpc.aio.Channel:
    """A connection of its own, whatever channels there are besides."""
    return grpc.aio.insecure_channel(address, options=[*UNLIMITED, ("grpc.use_local_subchannel_pool", 1)], **options)


def open_stream(
    channel: grpc.aio.Channel, segment: str = "s", *, method: str = PROCESS, timeout_s: float = WAIT_S
) -> Any:
    """An ext_proc stream for a segment."""
    call: Any = channel.stream_stream(
        method,
        request_serializer=pb.ProcessingRequest.SerializeToString,
        response_deserializer=pb.ProcessingResponse.FromString,
    )
    return call(metadata=(("x-attache-segment", segment),), timeout=timeout_s)


async def health_of(channel: grpc.aio.Channel, service: str) -> int:
    """What a check of a service's health says."""
    stub: Any = health_pb2_grpc.HealthStub(channel)
    status = await stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=WAIT_S)
    return int(status.status)


def watch_health(channel: grpc.aio.Channel, service: str) -> Any:
    """A stream of what a service's health is."""
    stub: Any = health_pb2_grpc.HealthStub(channel)
    return stub.Watch(health_pb2.HealthCheckRequest(service=service), timeout=2 * WAIT_S)
