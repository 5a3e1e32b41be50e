from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from structlog.testing import capture_logs

from attache_filters.extproc.server import SERVICE, running_server
from attache_filters.extproc.wire import ext_proc_pb2 as pb
from attache_filters.sdk.http import HttpBelow, HttpRequest, HttpResponse
from filters.extproc import from_envoy as envoy
from filters.extproc.hosting import WAIT_S, http_filter, pass_http, segment
from filters.extproc.to_envoy import said

SEGMENTS = {"s": segment(http_filter(pass_http))}
FOR_S = (("x-attache-segment", "s"),)


def open_stream(channel: grpc.aio.Channel) -> Any:
    call: Any = channel.stream_stream(
        f"/{SERVICE}/Process",
        request_serializer=pb.ProcessingRequest.SerializeToString,
        response_deserializer=pb.ProcessingResponse.FromString,
    )
    return call(metadata=FOR_S, timeout=WAIT_S)


async def health_of(channel: grpc.aio.Channel, service: str) -> int:
    stub: Any = health_pb2_grpc.HealthStub(channel)
    status = await stub.Check(health_pb2.HealthCheckRequest(service=service))
    return int(status.status)


@pytest.mark.parametrize("address", ["unix", "tcp"])
async def test_server_answers_on_both_kinds_of_address_and_is_healthy(address: str, tmp_path: Path) -> None:
    where = f"unix:{tmp_path}/s" if address == "unix" else "127.0.0.1:0"
    async with running_server(where, SEGMENTS, grace_s=1) as server:
        assert not server.address.endswith(":0")
        async with grpc.aio.insecure_channel(server.address) as channel:
            assert await health_of(channel, "") == health_pb2.HealthCheckResponse.SERVING
            assert await health_of(channel, SERVICE) == health_pb2.HealthCheckResponse.SERVING
            stream = open_stream(channel)
            await stream.write(envoy.get_request())
            assert said(await stream.read()) == ("request_headers", {}, [])
            await stream.done_writing()
            assert await stream.read() is grpc.aio.EOF
            assert await stream.code() is grpc.StatusCode.OK


async def test_message_over_grpcs_default_limit_passes(tmp_path: Path) -> None:
    async with running_server(f"unix:{tmp_path}/s", SEGMENTS, grace_s=1) as server:
        unlimited = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
        async with grpc.aio.insecure_channel(server.address, options=unlimited) as channel:
            stream = open_stream(channel)
            await stream.write(envoy.request_headers())
            await stream.write(envoy.request_body(b"x" * 6_000_000, end=True))
            await stream.read()
            body = b""
            while len(body) < 6_000_000:
                body += (await stream.read()).request_body.response.body_mutation.streamed_response.body
            stream.cancel()
    assert body == b"x" * 6_000_000


async def test_illegal_message_ends_its_stream_alone(tmp_path: Path) -> None:
    with capture_logs() as logs:
        async with (
            running_server(f"unix:{tmp_path}/s", SEGMENTS, grace_s=1) as server,
            grpc.aio.insecure_channel(server.address) as channel,
        ):
            broken, fine = open_stream(channel), open_stream(channel)
            await broken.write(envoy.request_body(b"x"))
            assert await broken.code() is grpc.StatusCode.INTERNAL
            await fine.write(envoy.get_request())
            assert said(await fine.read()) == ("request_headers", {}, [])
            fine.cancel()
    assert [log["event"] for log in logs] == ["an exchange was broken off"]


async def test_stop_lets_streams_under_way_end(tmp_path: Path) -> None:
    go_on = asyncio.Event()

    async def slow(_: HttpRequest, __: HttpBelow) -> HttpResponse:
        await go_on.wait()
        return HttpResponse.of_json(200, {})

    slow_segments = {"s": segment(http_filter(slow))}
    stopping = asyncio.Event()
    stop = asyncio.Event()
    address = f"unix:{tmp_path}/s"

    async def serve() -> None:
        async with running_server(address, slow_segments, grace_s=WAIT_S):
            stopping.set()
            await stop.wait()

    async with asyncio.timeout(2 * WAIT_S), asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(serve())
        await stopping.wait()
        async with grpc.aio.insecure_channel(address) as channel:
            stream = open_stream(channel)
            await stream.write(envoy.get_request())
            stub: Any = health_pb2_grpc.HealthStub(channel)
            watch = stub.Watch(health_pb2.HealthCheckRequest(service=SERVICE))
            assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING
            stop.set()
            assert (await watch.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
            watch.cancel()
            assert not serving.done()
            go_on.set()
            assert said(await stream.read())[:2] == ("immediate_response", 200)
            await stream.done_writing()
            assert await stream.code() is grpc.StatusCode.OK
        await serving


async def test_address_that_cannot_be_used_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="Cannot listen on"):
        async with running_server(f"unix:{tmp_path}/no/such/folder/s", SEGMENTS):
            pass
