"""What Envoy may rely on, whichever transport serves it; a client of gRPC's own library asks."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2
from structlog.testing import capture_logs

from attache_filters.extproc.transport.choice import Transport, default_transport
from attache_filters.extproc.transport.exchange import SERVICE
from attache_filters.extproc.transport.server import running_server
from attache_filters.sdk.http import HttpBelow, HttpRequest, HttpResponse
from filters.extproc import from_envoy as envoy
from filters.extproc.hosting import WAIT_S, http_filter, pass_http, segment
from filters.extproc.to_envoy import said
from filters.extproc.transport.rpc_client import health_of, open_channel, open_stream, watch_health

SEGMENTS = {"s": segment(http_filter(pass_http))}
SERVING, NOT_SERVING = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING


class Endless:
    """A filter that never answers, and says when it began and when it was cancelled."""

    def __init__(self) -> None:
        self.begun = asyncio.Queue[None]()
        self.cancelled = asyncio.Queue[None]()

    async def __call__(self, _: HttpRequest, __: HttpBelow) -> HttpResponse:
        self.begun.put_nowait(None)
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled.put_nowait(None)
        raise AssertionError


@pytest.mark.parametrize("address", ["unix", "tcp"])
async def test_server_answers_on_both_kinds_of_address_and_is_healthy(
    address: str, transport: Transport, tmp_path: Path
) -> None:
    where = f"unix:{tmp_path}/s" if address == "unix" else "127.0.0.1:0"
    async with running_server(where, SEGMENTS, transport=transport, grace_s=1) as server:
        assert not server.address.endswith(":0")
        async with open_channel(server.address) as channel:
            assert await health_of(channel, "") == SERVING
            assert await health_of(channel, SERVICE) == SERVING
            stream = open_stream(channel)
            await stream.write(envoy.get_request())
            assert said(await stream.read()) == ("request_headers", {}, [])
            await stream.done_writing()
            assert await stream.read() is grpc.aio.EOF
            assert await stream.code() is grpc.StatusCode.OK


@pytest.mark.parametrize(
    ("address", "transport"), [("unix:/s", "lean"), ("127.0.0.1:1", "grpcio"), ("[::1]:1", "grpcio")]
)
def test_unix_socket_is_served_leanly_unless_another_transport_is_chosen(address: str, transport: str) -> None:
    assert default_transport(address) == transport


async def test_message_over_grpcs_default_limit_passes(transport: Transport, tmp_path: Path) -> None:
    async with (
        running_server(f"unix:{tmp_path}/s", SEGMENTS, transport=transport, grace_s=1) as server,
        open_channel(server.address) as channel,
    ):
        stream = open_stream(channel)
        await stream.write(envoy.request_headers())
        await stream.write(envoy.request_body(b"x" * 6_000_000, end=True))
        await stream.read()
        body = b""
        while len(body) < 6_000_000:
            body += (await stream.read()).request_body.response.body_mutation.streamed_response.body
        stream.cancel()
    assert body == b"x" * 6_000_000


async def test_illegal_message_ends_its_stream_alone(transport: Transport, tmp_path: Path) -> None:
    with capture_logs() as logs:
        async with (
            running_server(f"unix:{tmp_path}/s", SEGMENTS, transport=transport, grace_s=1) as server,
            open_channel(server.address) as channel,
        ):
            broken, fine = open_stream(channel), open_stream(channel)
            await broken.write(envoy.request_body(b"x"))
            assert await broken.code() is grpc.StatusCode.INTERNAL
            assert await broken.details() == "The exchange was broken off."
            await fine.write(envoy.get_request())
            assert said(await fine.read()) == ("request_headers", {}, [])
            fine.cancel()
    assert [log["event"] for log in logs] == ["an exchange was broken off"]


async def test_stream_for_an_unknown_segment_is_refused_and_logged(transport: Transport, tmp_path: Path) -> None:
    with capture_logs() as logs:
        async with (
            running_server(f"unix:{tmp_path}/s", SEGMENTS, transport=transport, grace_s=1) as server,
            open_channel(server.address) as channel,
        ):
            stream = open_stream(channel, "50%")
            assert await stream.code() is grpc.StatusCode.UNIMPLEMENTED
            assert await stream.details() == "There is no segment '50%'."
    assert [log["event"] for log in logs] == ["a stream for an unknown segment"]


async def test_method_that_is_not_there_is_refused(transport: Transport, tmp_path: Path) -> None:
    async with (
        running_server(f"unix:{tmp_path}/s", SEGMENTS, transport=transport, grace_s=1) as server,
        open_channel(server.address) as channel,
    ):
        stream = open_stream(channel, method=f"/{SERVICE}/Other")
        assert await stream.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_health_of_a_service_that_is_not_there_is_unknown(transport: Transport, tmp_path: Path) -> None:
    async with (
        running_server(f"unix:{tmp_path}/s", SEGMENTS, transport=transport, grace_s=1) as server,
        open_channel(server.address) as channel,
    ):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await health_of(channel, "other")
        assert refused.value.code() is grpc.StatusCode.NOT_FOUND
        watch = watch_health(channel, "other")
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
        watch.cancel()


async def test_cancelled_stream_cancels_its_filters_alone(transport: Transport, tmp_path: Path) -> None:
    endless = Endless()
    segments = {"s": segment(http_filter(endless))}
    async with (
        asyncio.timeout(2 * WAIT_S),
        running_server(f"unix:{tmp_path}/s", segments, transport=transport, grace_s=0) as server,
        open_channel(server.address) as channel,
    ):
        leaving, staying = open_stream(channel), open_stream(channel)
        for stream in (leaving, staying):
            await stream.write(envoy.get_request())
            await endless.begun.get()
        leaving.cancel()
        await endless.cancelled.get()
        assert endless.cancelled.empty()
        assert not staying.done()


async def test_lost_connection_cancels_the_filters_of_all_its_streams(transport: Transport, tmp_path: Path) -> None:
    endless = Endless()
    segments = {"s": segment(http_filter(endless))}
    async with (
        asyncio.timeout(2 * WAIT_S),
        running_server(f"unix:{tmp_path}/s", segments, transport=transport, grace_s=0) as server,
    ):
        async with open_channel(server.address) as channel:
            streams = [open_stream(channel) for _ in range(3)]
            for stream in streams:
                await stream.write(envoy.get_request())
                await endless.begun.get()
        for _ in streams:
            await endless.cancelled.get()


async def test_deadline_of_a_stream_is_kept(transport: Transport, tmp_path: Path) -> None:
    endless = Endless()
    segments = {"s": segment(http_filter(endless))}
    async with (
        asyncio.timeout(2 * WAIT_S),
        running_server(f"unix:{tmp_path}/s", segments, transport=transport, grace_s=0) as server,
        open_channel(server.address) as channel,
    ):
        stream = open_stream(channel, timeout_s=0.2)
        await stream.write(envoy.get_request())
        await endless.begun.get()
        assert await stream.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        await endless.cancelled.get()


async def test_stop_lets_streams_under_way_end(transport: Transport, tmp_path: Path) -> None:
    go_on = asyncio.Event()

    async def slow(_: HttpRequest, __: HttpBelow) -> HttpResponse:
        await go_on.wait()
        return HttpResponse.of_json(200, {})

    slow_segments = {"s": segment(http_filter(slow))}
    stopping = asyncio.Event()
    stop = asyncio.Event()
    address = f"unix:{tmp_path}/s"

    async def serve() -> None:
        async with running_server(address, slow_segments, transport=transport, grace_s=WAIT_S):
            stopping.set()
            await stop.wait()

    async with asyncio.timeout(2 * WAIT_S), asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(serve())
        await stopping.wait()
        async with open_channel(address) as channel:
            stream = open_stream(channel)
            await stream.write(envoy.get_request())
            watch = watch_health(channel, SERVICE)
            assert (await watch.read()).status == SERVING
            stop.set()
            assert (await watch.read()).status == NOT_SERVING
            watch.cancel()
            assert not serving.done()
            go_on.set()
            assert said(await stream.read())[:2] == ("immediate_response", 200)
            await stream.done_writing()
            assert await stream.code() is grpc.StatusCode.OK
        await serving


async def test_stop_cancels_what_does_not_end_within_the_grace_period(transport: Transport, tmp_path: Path) -> None:
    endless = Endless()
    segments = {"s": segment(http_filter(endless))}
    async with asyncio.timeout(2 * WAIT_S), open_channel(f"unix:{tmp_path}/s") as channel:
        async with running_server(f"unix:{tmp_path}/s", segments, transport=transport, grace_s=0.1):
            stream = open_stream(channel)
            await stream.write(envoy.get_request())
            await endless.begun.get()
        await endless.cancelled.get()
        assert await stream.code() is not grpc.StatusCode.OK


async def test_address_that_cannot_be_used_is_an_os_error(transport: Transport, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="Cannot listen on"):
        async with running_server(f"unix:{tmp_path}/no/such/folder/s", SEGMENTS, transport=transport):
            pass


async def test_socket_file_of_a_dead_server_is_replaced_and_none_is_left(transport: Transport, tmp_path: Path) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    async with (
        running_server(f"unix:{path}", SEGMENTS, transport=transport, grace_s=0) as server,
        open_channel(server.address) as channel,
    ):
        assert await health_of(channel, "") == SERVING
    assert not path.exists()
