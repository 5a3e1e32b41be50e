"""Many streams at once, some of which leave: nothing is lost, and nothing is left of them."""

from __future__ import annotations

import asyncio
import gc
import random
from pathlib import Path

import grpc

from attache_filters.extproc.transport.lean.call import Call
from attache_filters.extproc.transport.lean.connection import GrpcConnection
from attache_filters.extproc.transport.server import running_server
from attache_filters.sdk.http import HttpBelow, HttpRequest, HttpResponse, one_chunk
from filters.extproc import from_envoy as envoy
from filters.extproc.hosting import WAIT_S, http_filter, segment
from filters.extproc.transport.rpc_client import health_of, open_channel, open_stream

STREAMS = 64
CHUNK_BYTES = 60_000
LONGEST_BODY_BYTES = 1 << 20


async def echo(request: HttpRequest, _: HttpBelow) -> HttpResponse:
    await asyncio.sleep(0)
    return HttpResponse(200, {"content-type": "text/event-stream"}, one_chunk(request.body))


async def converse(channel: grpc.aio.Channel, chance: random.Random) -> None:
    """One exchange, with a body of any length; perhaps it is given up somewhere, perhaps its answer is read slowly."""
    body = chance.randbytes(chance.choice([0, 100, CHUNK_BYTES, LONGEST_BODY_BYTES]))
    chunks = [body[start : start + CHUNK_BYTES] for start in range(0, len(body), CHUNK_BYTES)]
    leaves_after = chance.choice([None, None, 0, 1, len(chunks)])
    is_slow = chance.random() < 0.2
    stream = open_stream(channel, timeout_s=60)
    await stream.write(envoy.request_headers())
    for count, chunk in enumerate([*chunks, b""]):
        if count == leaves_after:
            stream.cancel()
            return
        await stream.write(envoy.request_body(chunk, end=count == len(chunks)))
    read = b""
    while True:
        message = await stream.read()
        said = message.streamed_immediate_response.body_response
        read += said.body
        if is_slow:
            await asyncio.sleep(0)
        if said.end_of_stream:
            break
    assert read == body
    await stream.done_writing()
    assert await stream.code() is grpc.StatusCode.OK


async def test_many_streams_are_served_whole_and_leave_nothing(tmp_path: Path) -> None:
    chance = random.Random(6)
    tasks_before = asyncio.all_tasks()
    segments = {"s": segment(http_filter(echo))}
    async with (
        asyncio.timeout(12 * WAIT_S),
        running_server(f"unix:{tmp_path}/s", segments, transport="lean", grace_s=0) as server,
        open_channel(server.address) as channel,
    ):
        async with asyncio.TaskGroup() as clients:
            for _ in range(2 * STREAMS):
                clients.create_task(converse(channel, random.Random(chance.random())))
        for _ in range(3):  # by then the server has read all that the clients sent
            await health_of(channel, "")
        gc.collect()
        calls = [each for each in gc.get_objects() if isinstance(each, Call)]
        streams = [each._http2.open_streams for each in gc.get_objects() if isinstance(each, GrpcConnection)]
        assert (calls, streams) == ([], [0])
    assert asyncio.all_tasks() == tasks_before
