"""gRPC's health service: SERVING until the server drains, then NOT_SERVING. Source: grpc.health.v1 and its document."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from google.protobuf.message import DecodeError
from grpc_health.v1 import health_pb2 as pb

from attache_filters.extproc.transport.lean.call import Call
from attache_filters.extproc.transport.lean.connection import Handler
from attache_filters.extproc.transport.rpc import RpcError, StatusCode

_SERVING, _NOT_SERVING, _SERVICE_UNKNOWN = (
    pb.HealthCheckResponse(status=status).SerializeToString()
    for status in (
        pb.HealthCheckResponse.SERVING,
        pb.HealthCheckResponse.NOT_SERVING,
        pb.HealthCheckResponse.SERVICE_UNKNOWN,
    )
)


class Health:
    """The health of `service`, and of the server as a whole, whose name is empty."""

    def __init__(self, service: str) -> None:
        self._services = ("", service)
        self._draining = asyncio.Event()

    @property
    def handlers(self) -> Mapping[bytes, Handler]:
        """The service's methods by path."""
        return {b"/grpc.health.v1.Health/Check": self._check, b"/grpc.health.v1.Health/Watch": self._watch}

    def drain(self) -> None:
        """Nothing is served any more, and whoever watches is told."""
        self._draining.set()

    @property
    def _answer(self) -> bytes:
        return _NOT_SERVING if self._draining.is_set() else _SERVING

    async def _check(self, call: Call) -> None:
        if await _asked_service(call) not in self._services:
            raise RpcError(StatusCode.NOT_FOUND, "There is no such service.")
        await call.write(self._answer)

    async def _watch(self, call: Call) -> None:
        """Say what the health is, and what it becomes. The drain, which a watch would hold up, ends it."""
        known = await _asked_service(call) in self._services
        last = self._answer if known else _SERVICE_UNKNOWN
        await call.write(last)
        await self._draining.wait()
        if known and last != self._answer:
            await call.write(self._answer)
        raise RpcError(StatusCode.UNAVAILABLE, "The server stops.")


async def _asked_service(call: Call) -> str:
    message = await call.read()
    if message is None or await call.read() is not None:
        raise RpcError(StatusCode.INTERNAL, "The call takes one message.")
    try:
        return pb.HealthCheckRequest.FromString(message).service
    except DecodeError:
        raise RpcError(StatusCode.INTERNAL, "The message is no HealthCheckRequest.") from None
