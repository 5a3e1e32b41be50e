"""The HTTP/1.1 client against a server that sends exactly the bytes it is told to, cut wherever it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attache_core.http1 import BrokenOffError, Http1Connection, Http1Pool, Http1Request
from attache_core.http1.connection import MAX_HEAD_BYTES, MAX_UNREAD_BYTES

REQUEST = Http1Request("POST", "/v1/responses", {"host": "here"}, b'{"a":1}')
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n5\r\ndefgh\r\n0\r\n\r\n"
SIZED = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nX-Twice: a\r\nx-twice: b\r\n\r\nhi"


@dataclass
class Answering:
    """A server: what it answers to each request in turn, and what it was asked.

    Attributes:
        answers: each a sequence of writes; None closes the connection.
        ended: how many of its connections are closed.
    """

    answers: list[Sequence[bytes | None]]
    port: int = 0
    connections: int = 0
    ended: int = 0
    writes: int = 0
    requests: list[bytes] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    closed: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while data := await reader.read(65536):
                self.requests.append(data)
                self.asked.set()
                for piece in self.answers.pop(0) if self.answers else ():
                    self.writes += 1
                    if piece is None:
                        return
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0)
        except ConnectionError:
            pass
        finally:
            writer.close()
            self.closed.set()
            self.ended += 1

    async def dial(self, protocol: Callable[[], Http1Connection]) -> Http1Connection:
        _, connection = await asyncio.get_running_loop().create_connection(protocol, "127.0.0.1", self.port)
        return connection


@asynccontextmanager
async def answering(
    *answers: Sequence[bytes | None], idle_s: float = 60.0
) -> AsyncIterator[tuple[Answering, Http1Pool]]:
    server = Answering(list(answers))
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.port = listener.sockets[0].getsockname()[1]
    pool = Http1Pool(server.dial, max_idle=2, idle_s=idle_s)
    async with asyncio.timeout(5):
        try:
            yield server, pool
        finally:
            pool.close()
            if server.connections:
                await server.closed.wait()
            listener.close()


async def whole(pool: Http1Pool, request: Http1Request = REQUEST) -> tuple[int, dict[str, str], bytes]:
    response = await pool.send(request)
    return response.status, dict(response.headers), b"".join([data async for data in response.body])


def test_request_is_its_line_its_headers_its_length_and_its_body() -> None:
    request = Http1Request("POST", "/a?b=\udcff", {"host": "h", "x-name": "\udce9é"}, b"body")
    assert (
        request.encode()
        == b"POST /a?b=\xff HTTP/1.1\r\nhost: h\r\nx-name: \xe9\xc3\xa9\r\ncontent-length: 4\r\n\r\nbody"
    )


@pytest.mark.parametrize(
    "request_",
    [
        Http1Request("POST /", "/", {}),
        Http1Request("POST", "/ HTTP/1.1\r\nx: y", {}),
        Http1Request("POST", "", {}),
        Http1Request("POST", "/", {"x": "a\r\nsecond: b"}),
        Http1Request("POST", "/", {"x": "a\nb"}),
        Http1Request("POST", "/", {"x\r\ny": "a"}),
        Http1Request("POST", "/", {"x y": "a"}),
        Http1Request("POST", "/", {"": "a"}),
        Http1Request("POST", "/", {"Content-Length": "1"}),
        Http1Request("POST", "/", {"transfer-encoding": "chunked"}),
    ],
)
def test_request_that_would_be_read_as_another_is_refused(request_: Http1Request) -> None:
    with pytest.raises(ValueError, match=r"must be a method and a target|not a header"):
        request_.encode()


async def test_second_request_takes_the_connection_of_the_first() -> None:
    async with answering([SIZED], [CHUNKED]) as (server, pool):
        first, second = await whole(pool), await whole(pool)
    assert first == (200, {"content-length": "2", "x-twice": "a, b"}, b"hi")
    assert second == (200, {"transfer-encoding": "chunked"}, b"abcdefgh")
    assert (server.connections, server.requests) == (1, [REQUEST.encode()] * 2)


async def test_requests_at_once_have_connections_of_their_own() -> None:
    async with answering([SIZED], [SIZED]) as (server, pool), asyncio.TaskGroup() as tasks:
        answers = [tasks.create_task(whole(pool)) for _ in range(2)]
    assert ([answer.result()[2] for answer in answers], server.connections) == ([b"hi", b"hi"], 2)


@pytest.mark.parametrize(
    "last",
    [
        [b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nhi"],
        [b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nhi"],
        [b"HTTP/1.1 200 OK\r\n\r\nhi", None],
        [SIZED + b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx"],
    ],
    ids=["said", "old", "unframed", "unasked"],
)
async def test_connection_that_ends_with_a_response_is_not_used_again(last: Sequence[bytes | None]) -> None:
    async with answering(last, [SIZED]) as (server, pool):
        first = await whole(pool)
        await server.closed.wait()
        second = await whole(pool)
    assert ((first[0], first[2]), second[2], server.connections) == ((200, b"hi"), b"hi", 2)


async def test_idle_connection_that_the_server_closed_is_not_used_again() -> None:
    async with answering([SIZED, None], [SIZED]) as (server, pool):
        await whole(pool)
        await server.closed.wait()
        assert (await whole(pool))[2] == b"hi"
    assert server.connections == 2


async def test_connection_that_was_idle_too_long_is_not_used_again() -> None:
    async with answering([SIZED], [SIZED], idle_s=0.0) as (server, pool):
        await whole(pool)
        await whole(pool)
    assert server.connections == 2


async def test_connections_that_are_idle_too_long_are_closed_though_nobody_asks() -> None:
    async with answering([SIZED], [SIZED], idle_s=0.05) as (server, pool), asyncio.TaskGroup() as tasks:
        for _ in range(2):
            tasks.create_task(whole(pool))
        while server.ended < 2:  # noqa: ASYNC110 - the server is only ever asked
            await asyncio.sleep(0.01)


async def test_response_without_a_body_is_complete_at_once() -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n"
    async with answering([head], [b"HTTP/1.1 204 No Content\r\n\r\n"]) as (_, pool):
        head_answer = await whole(pool, Http1Request("HEAD", "/", {"host": "here"}))
        assert (head_answer, await whole(pool)) == ((200, {"content-length": "7"}, b""), (204, {}, b""))


async def test_interim_response_is_not_the_answer() -> None:
    async with answering([b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n", SIZED]) as (_, pool):
        status, headers, body = await whole(pool)
    assert (status, "link" in headers, body) == (200, False, b"hi")


@pytest.mark.parametrize(
    "broken",
    [
        [None],
        [b"HTTP/1.1 200 OK\r\ncontent-le", None],
        [b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhi", None],
        [CHUNKED[:-5], None],
        [b"SSH-2.0-OpenSSH\r\n"],
        [b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"],
        [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nnonsense\r\n"],
        [b"HTTP/1.1 200 OK\r\nx-\xff: y\r\n\r\n"],
        [b"HTTP/1.1 200 OK\r\nx: " + b"y" * (2 * MAX_HEAD_BYTES)],
        [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx: " + b"y" * (2 * MAX_HEAD_BYTES)],
    ],
    ids=["nothing", "head", "sized", "chunked", "no-http", "upgrade", "chunk", "name", "long-head", "long-trailer"],
)
async def test_response_that_is_not_whole_breaks_off_and_ends_the_connection(broken: Sequence[bytes | None]) -> None:
    async with answering(broken, [SIZED]) as (server, pool):
        with pytest.raises(BrokenOffError):
            await whole(pool)
        assert (await whole(pool))[2] == b"hi"
    assert server.connections == 2


async def test_what_came_before_a_body_broke_off_is_read_first() -> None:
    async with answering([b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhi", None]) as (server, pool):
        response = await pool.send(REQUEST)
        await server.closed.wait()
        assert await anext(response.body) == b"hi"
        with pytest.raises(BrokenOffError):
            await anext(response.body)


async def test_closing_a_body_early_ends_the_connection() -> None:
    async with answering([b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhi"], [SIZED]) as (server, pool):
        response = await pool.send(REQUEST)
        await response.body.aclose()
        await server.closed.wait()
        assert [data async for data in response.body] == []
        assert (await whole(pool))[2] == b"hi"


async def test_request_that_is_refused_leaves_the_kept_connection_alone() -> None:
    async with answering([SIZED], [SIZED]) as (server, pool):
        await whole(pool)
        with pytest.raises(ValueError, match="not a header"):
            await pool.send(Http1Request("POST", "/", {"x": "\n"}))
        await whole(pool)
    assert server.connections == 1


@pytest.mark.parametrize("framing", [b"content-length: 5", b"transfer-encoding: chunked", b"x: until the end"])
async def test_closing_the_pool_breaks_off_what_is_under_way(framing: bytes) -> None:
    async with answering([b"HTTP/1.1 200 OK\r\n%s\r\n\r\n" % framing]) as (_, pool):
        response = await pool.send(REQUEST)
        pool.close()
        with pytest.raises(BrokenOffError):
            await anext(response.body)


async def test_request_whose_connection_is_made_while_the_pool_closes_is_not_sent() -> None:
    async with answering([SIZED]) as (server, _), asyncio.TaskGroup() as tasks:
        dialing, go_on = asyncio.Event(), asyncio.Event()

        async def dial(protocol: Callable[[], Http1Connection]) -> Http1Connection:
            dialing.set()
            await go_on.wait()
            return await server.dial(protocol)

        slow = Http1Pool(dial, max_idle=2, idle_s=60)
        asking = tasks.create_task(_failing(slow))
        await dialing.wait()
        slow.close()
        go_on.set()
        await asking
        await server.closed.wait()
    assert (server.requests, server.connections) == ([], 1)


async def _failing(pool: Http1Pool) -> None:
    with pytest.raises(BrokenOffError):
        await pool.send(REQUEST)


async def test_cancelled_request_ends_the_connection() -> None:
    async with answering([]) as (server, pool), asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(pool.send(REQUEST))
        await server.asked.wait()
        asking.cancel()
        await server.closed.wait()


async def test_body_that_nobody_reads_stays_with_the_server() -> None:
    size = 64 * MAX_UNREAD_BYTES
    head = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size
    pieces = [b"x" * MAX_UNREAD_BYTES] * 64
    async with answering([head, *pieces]) as (server, pool):
        response = await pool.send(REQUEST)
        before = 0
        while server.writes > before:
            before = server.writes
            await asyncio.sleep(0.01)
        held = server.writes
        read = sum([len(data) async for data in response.body])
    assert (held < 32, read) == (True, size)


@settings(max_examples=25, deadline=None)
@given(st.sampled_from([CHUNKED, SIZED]), st.data())
def test_any_cut_of_a_response_is_the_same_response(response: bytes, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(response)), max_size=6)))
    pieces = [response[start:end] for start, end in zip([0, *cuts], [*cuts, len(response)], strict=True)]

    async def answered(writes: Sequence[bytes]) -> tuple[int, dict[str, str], bytes]:
        async with answering([piece for piece in writes if piece]) as (_, pool):
            return await whole(pool)

    assert asyncio.run(answered(pieces)) == asyncio.run(answered([response]))
