"""What the server answers to bytes that no good client sends, and to good ones that come in pieces."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
import pytest_asyncio
from grpc_health.v1 import health_pb2
from structlog.testing import capture_logs

from attache_filters.extproc.transport.exchange import SERVICE
from attache_filters.extproc.transport.server import RunningServer, running_server
from attache_filters.extproc.wire import ext_proc_pb2 as pb
from attache_filters.sdk.http import HttpBelow, HttpRequest, HttpResponse
from filters.extproc import from_envoy as envoy
from filters.extproc.hosting import WAIT_S, http_filter, pass_http, segment
from filters.extproc.to_envoy import said
from filters.extproc.transport.lean.raw_client import CHECK, RawClient, framed, raw_client
from filters.extproc.transport.rpc_client import open_channel, open_stream, watch_health

HEAD = {":status": "200", "content-type": "application/grpc"}
OK = {"grpc-status": "0"}
GET = framed(envoy.get_request().SerializeToString())
SERVING, NOT_SERVING = (
    framed(health_pb2.HealthCheckResponse(status=status).SerializeToString())
    for status in (health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING)
)
ASKS = framed(health_pb2.HealthCheckRequest(service=SERVICE).SerializeToString())


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[RunningServer]:
    segments = {"s": segment(http_filter(pass_http))}
    async with running_server(f"unix:{tmp_path}/s", segments, transport="lean", grace_s=0) as running:
        yield running


@pytest_asyncio.fixture
async def client(server: RunningServer) -> AsyncIterator[RawClient]:
    async with raw_client(server.address) as connected:
        yield connected


async def exchange(client: RawClient) -> None:
    """One whole exchange: the connection is well."""
    stream = client.open()
    client.write(stream, GET)
    await client.hears(stream)
    client.write(stream, b"", end=True)
    answer = await client.ends(stream)
    assert said(pb.ProcessingResponse.FromString(answer.body[5:])) == ("request_headers", {}, [])
    assert answer.heads == [HEAD, OK]


async def test_message_in_many_frames_is_read_and_messages_in_one_frame_are(client: RawClient) -> None:
    slow, quick = client.open(CHECK), client.open(CHECK)
    for byte in ASKS:
        client.write(slow, bytes([byte]))
    client.write(slow, b"", end=True)
    client.write(quick, ASKS, end=True)
    for stream in (slow, quick):
        answer = await client.ends(stream)
        assert (answer.heads, answer.body) == ([HEAD, OK], SERVING)
    await exchange(client)


@pytest.mark.parametrize(
    ("fields", "status"), [({"method": "PUT"}, "405"), ({"content_type": "application/json"}, "415")]
)
async def test_request_that_is_no_grpc_gets_an_http_status(
    client: RawClient, fields: dict[str, str], status: str
) -> None:
    stream = client.open(**fields)
    answer = await client.ends(stream)
    assert (answer.heads[0][":status"], answer.body) == (status, b"")
    await exchange(client)


@pytest.mark.parametrize(
    ("data", "end", "status"),
    [
        (b"\1\0\0\0\1x", False, ("12", "Compressed messages are not understood here.")),
        (b"\0\xff\xff\xff\xffx", False, ("8", "A message has 4294967295 bytes; at most 268435456 are taken.")),
        (GET[:-1], True, ("13", "The request ended inside a message.")),
    ],
)
async def test_message_that_cannot_be_read_ends_its_call_alone(
    client: RawClient, data: bytes, end: bool, status: tuple[str, str]
) -> None:
    beside, stream = client.open(CHECK), client.open()
    client.write(stream, data, end=end)
    answer = await client.ends(stream)
    assert answer.heads == [{**HEAD, "grpc-status": status[0], "grpc-message": status[1]}]
    client.write(beside, ASKS, end=True)
    assert (await client.ends(beside)).body == SERVING
    await exchange(client)


async def test_bytes_that_are_no_message_of_envoys_end_their_exchange_alone(client: RawClient) -> None:
    with capture_logs() as logs:
        stream = client.open()
        client.write(stream, framed(b"\xff\xff\xff"))
        answer = await client.ends(stream)
        assert answer.heads == [{**HEAD, "grpc-status": "13", "grpc-message": "The exchange was broken off."}]
        await exchange(client)
    assert [log["event"] for log in logs] == ["an exchange was broken off"]


@pytest.mark.parametrize("messages", [b"", ASKS + ASKS, framed(b"\xff\xff")])
async def test_check_without_exactly_one_request_is_an_error(client: RawClient, messages: bytes) -> None:
    stream = client.open(CHECK)
    client.write(stream, messages, end=True)
    assert (await client.ends(stream)).heads[0]["grpc-status"] == "13"


async def test_timeout_that_is_none_is_an_error(client: RawClient) -> None:
    answer = await client.ends(client.open(grpc_timeout="soon"))
    assert answer.heads[0]["grpc-status"] == "13"


async def test_connection_that_breaks_the_protocol_is_closed_with_the_reason_and_no_other_is(
    server: RunningServer, client: RawClient
) -> None:
    with capture_logs() as logs:
        async with raw_client(server.address) as broken:
            broken.open()
            broken.send(b"\0\0\0\0\0\0\0\0\0")  # DATA on stream 0
            while await broken.receive():
                pass
            assert broken.gone_away == [1]
        await exchange(client)
    assert [log["event"] for log in logs] == ["a connection broke the protocol"]


async def test_slow_filter_slows_its_own_stream_down_and_no_other(tmp_path: Path) -> None:
    """A filter that does not read the response below: no more than a few windows of it are taken."""
    go_on = asyncio.Event()

    async def slow(request: HttpRequest, below: HttpBelow) -> HttpResponse:
        response = await below(request)
        await go_on.wait()
        return response

    segments = {"slow": segment(http_filter(slow)), "s": segment(http_filter(pass_http))}
    async with (
        running_server(f"unix:{tmp_path}/s", segments, transport="lean", grace_s=0) as server,
        raw_client(server.address) as client,
    ):
        stream = client.open(segment="slow")
        client.write(stream, GET)
        await client.hears(stream)
        client.write(stream, framed(envoy.response_headers().SerializeToString()))
        chunk = framed(envoy.response_body(b"x" * 10_000).SerializeToString())
        sent = 0
        while client.h2.local_flow_control_window(stream) >= len(chunk):
            client.write(stream, chunk)
            sent += len(chunk)
            assert sent < 4 << 20
            await exchange(client)
        go_on.set()
        while client.h2.local_flow_control_window(stream) < len(chunk):
            assert await client.receive()


async def test_connection_made_while_the_server_drains_is_told_so(tmp_path: Path) -> None:
    stop, stopping = asyncio.Event(), asyncio.Event()
    address = f"unix:{tmp_path}/s"

    async def serve() -> None:
        segments = {"s": segment(http_filter(pass_http))}
        async with running_server(address, segments, transport="lean", grace_s=WAIT_S):
            stopping.set()
            await stop.wait()

    async with asyncio.timeout(2 * WAIT_S), asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(serve())
        await stopping.wait()
        async with open_channel(address) as channel:
            under_way = open_stream(channel)
            await under_way.write(envoy.get_request())
            await under_way.read()
            watch = watch_health(channel, SERVICE)
            await watch.read()
            stop.set()
            await watch.read()
            async with raw_client(address) as late:
                check, stream = late.open(CHECK), late.open()
                late.write(check, ASKS, end=True)
                assert (await late.ends(check)).body == NOT_SERVING
                assert (await late.ends(stream)).heads == [
                    {**HEAD, "grpc-status": "14", "grpc-message": "The server stops."}
                ]
            assert not serving.done()
            await under_way.done_writing()
            assert await under_way.code() is grpc.StatusCode.OK
        await serving
