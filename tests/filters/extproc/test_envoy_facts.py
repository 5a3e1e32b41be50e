"""What the host relies on, seen in a real Envoy: an Envoy that changes any of it fails here, loudly."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from structlog.testing import capture_logs

from attache_core.events.event import Event
from attache_core.events.sse import encode_event
from attache_core.turn.below import Below
from attache_core.types.turn import TurnRequest
from attache_filters.extproc.loop_client import LoopClient
from attache_filters.extproc.segment import Segment
from attache_filters.extproc.transport.server import running_server
from attache_filters.sdk.http import HttpBelow, HttpRequest, HttpResponse, one_chunk
from attache_filters.testing import text_events
from filters.extproc.hosting import WAIT_S, http_filter, pass_http, pass_turn, segment, turn_filter
from filters.extproc.real_envoy import RealEnvoy, may_keep_content_length
from filters.extproc.upstream import Answer, Answerer, Received, Upstream, running_upstream

URL = "http://gateway/v1/responses"
CHAINED = pytest.mark.placements("split")
"""Several ext_proc filters in one chain, which is what split placement makes."""
EVENTS = text_events("hello")
SSE = b"".join(encode_event(event) for event in EVENTS)


async def answer_ok(_: Received, answer: Answerer) -> None:
    await answer.whole(200, {"content-type": "text/plain"}, b"hello")


async def answer_echo(request: Received, answer: Answerer) -> None:
    await answer.whole(200, {}, request.body)


async def answer_events(_: Received, answer: Answerer) -> None:
    await answer.start(200, {"content-type": "text/event-stream"})
    await answer.data(SSE)
    await answer.end()


@asynccontextmanager
async def gateway(
    real_envoy: RealEnvoy, listener: str, answer: Answer, **segments: Segment
) -> AsyncIterator[tuple[httpx.AsyncClient, Upstream]]:
    """A client of one listener, with these segments behind it and this upstream below."""
    transport = httpx.AsyncHTTPTransport(uds=str(real_envoy.listener(listener)))
    async with (
        running_upstream(real_envoy.upstream, answer) as upstream,
        running_server(f"unix:{real_envoy.processor}", segments, transport=real_envoy.transport, grace_s=1),
        httpx.AsyncClient(transport=transport, timeout=WAIT_S) as client,
    ):
        yield client, upstream


# ---- holding and rewriting


async def test_held_request_and_response_are_rewritten(real_envoy: RealEnvoy) -> None:
    async def rewrite(request: HttpRequest, below: HttpBelow) -> HttpResponse:
        headers = {**request.headers, "x-new": "1"}
        response = await below(HttpRequest("POST", "/v2/other?q=1", headers, request.body.upper()))
        body = b"".join([data async for data in response.body])
        return HttpResponse(418, {"x-len": str(len(body))}, one_chunk(b"teapot"))

    async with gateway(real_envoy, "one", answer_ok, a=segment(http_filter(rewrite))) as (client, upstream):
        response = await client.post(URL, content=b"abc", headers={"accept-encoding": "gzip"})
    assert (response.status_code, response.content, response.headers["x-len"]) == (418, b"teapot", "5")
    assert "content-type" not in response.headers
    (got,) = upstream.received
    assert (got.target, got.body, got.headers["x-new"]) == ("/v2/other?q=1", b"ABC", "1")
    assert "accept-encoding" not in got.headers


async def test_get_goes_through_and_may_get_a_body(real_envoy: RealEnvoy) -> None:
    async def add_body(request: HttpRequest, below: HttpBelow) -> HttpResponse:
        return await below(HttpRequest("GET", request.path, request.headers, b"added"))

    for run, body in ((pass_http, b""), (add_body, b"added")):
        async with gateway(real_envoy, "one", answer_ok, a=segment(http_filter(run))) as (client, upstream):
            assert (await client.get(URL)).content == b"hello"
        assert [(got.method, got.body) for got in upstream.received] == [("GET", body)]


async def test_response_without_a_body_gets_one(real_envoy: RealEnvoy) -> None:
    async def unauthorized(_: Received, answer: Answerer) -> None:
        await answer.whole(401, {}, b"")

    async with gateway(real_envoy, "one", unauthorized, a=segment(turn_filter(pass_turn))) as (client, _):
        response = await client.post(URL, json={"model": "m"})
    assert (response.status_code, response.headers["content-type"]) == (401, "application/json")
    assert response.json()["error"]["message"] == "The request failed with HTTP status 401."


@pytest.mark.parametrize("listener", ["one", pytest.param("two", marks=CHAINED)])
async def test_trailers_of_both_directions_go_through(real_envoy: RealEnvoy, listener: str) -> None:
    async def with_trailers(_: Received, answer: Answerer) -> None:
        await answer.start(200, {"transfer-encoding": "chunked", "trailer": "x-sum"})
        await answer.data(b"hello")
        await answer.end({"x-sum": "5"})

    passing = segment(http_filter(pass_http))
    async with gateway(real_envoy, listener, with_trailers, a=passing, b=passing) as (_, upstream):
        reader, writer = await asyncio.open_unix_connection(real_envoy.listener(listener))
        head = b"POST /v1/x HTTP/1.1\r\nhost: gateway\r\ntransfer-encoding: chunked\r\ntrailer: x-t\r\n\r\n"
        writer.write(head + b"3\r\nabc\r\n0\r\nx-t: 1\r\n\r\n")
        async with asyncio.timeout(WAIT_S):
            answer = await reader.readuntil(b"x-sum: 5\r\n\r\n")
        writer.close()
    assert answer.endswith(b"5\r\nhello\r\n0\r\nx-sum: 5\r\n\r\n")
    assert [got.body for got in upstream.received] == [b"abc"]


async def test_response_may_end_while_the_upstream_still_sends(real_envoy: RealEnvoy) -> None:
    async def endless(_: Received, answer: Answerer) -> None:
        await answer.start(200)
        while True:
            await answer.data(b"x" * 10_000)

    async def first_only(request: HttpRequest, below: HttpBelow) -> HttpResponse:
        response = await below(request)
        return HttpResponse(200, {}, one_chunk((await anext(response.body))[:1]))

    async with gateway(real_envoy, "one", endless, a=segment(http_filter(first_only))) as (client, _):
        assert (await client.post(URL, content=b"q")).content == b"x"


async def test_response_goes_on_after_the_upstream_ended_with_requests_through_the_same_envoy(
    real_envoy: RealEnvoy,
) -> None:
    loop = LoopClient(str(real_envoy.listener("loop")))

    async def three_rounds(request: HttpRequest, below: HttpBelow) -> HttpResponse:
        first = await below(request)

        async def body() -> AsyncIterator[bytes]:
            async for data in first.body:
                yield data
            for _ in range(2):
                async for data in (await below(request)).body:
                    yield data

        return HttpResponse(200, {"content-type": "text/event-stream"}, body())

    rounds = segment(http_filter(three_rounds), loop=loop)
    async with gateway(real_envoy, "one", answer_ok, a=rounds) as (client, upstream):
        before = real_envoy.stat("http.loop.downstream_rq_total")
        assert (await client.post(URL, content=b"q")).content == b"hello" * 3
        assert real_envoy.stat("http.loop.downstream_rq_total") == before + 2
    await loop.close()
    assert [(got.target, got.headers["host"], got.body) for got in upstream.received] == [
        ("/v1/responses", "gateway", b"q")
    ] * 3


# ---- replies of our own


@pytest.mark.parametrize("size", [0, 2, 2_000_000])
async def test_whole_reply_reaches_the_client(real_envoy: RealEnvoy, size: int) -> None:
    async def reply(_: HttpRequest, __: HttpBelow) -> HttpResponse:
        return HttpResponse(404, {"content-type": "application/json", "x-a": "1"}, one_chunk(b"x" * size))

    async with gateway(real_envoy, "one", answer_ok, a=segment(http_filter(reply))) as (client, upstream):
        for response in (await client.get(URL), await client.post(URL, content=b"q")):
            assert (response.status_code, response.headers["x-a"], len(response.content)) == (404, "1", size)
            # Envoy drops the content-type of a reply without a body.
            assert response.headers.get("content-type") == ("application/json" if size else None)
    assert upstream.received == []


async def created_first(turn: TurnRequest, below: Below) -> AsyncIterator[Event]:
    yield EVENTS[0]
    async for event in below(turn):
        if event.type != "response.created":
            yield event


@pytest.mark.parametrize("listener", ["one", pytest.param("two", marks=CHAINED)])
async def test_filter_that_yields_before_it_calls_below_streams_at_once(real_envoy: RealEnvoy, listener: str) -> None:
    reached = asyncio.Event()
    seen_by_client = asyncio.Event()

    async def answer(request: Received, answerer: Answerer) -> None:
        reached.set()
        await seen_by_client.wait()
        await answer_events(request, answerer)

    loop = LoopClient(str(real_envoy.listener("loop")))
    dispatch, passing = segment(turn_filter(created_first), loop=loop), segment(turn_filter(pass_turn))
    last, first = (dispatch, passing) if listener == "one" else (passing, dispatch)
    segments = {"a": last, "b": first} if listener == "two" else {"a": dispatch}
    async with (
        gateway(real_envoy, listener, answer, **segments) as (client, upstream),
        client.stream("POST", URL, json={"model": "m", "stream": True}) as response,
    ):
        body = response.aiter_raw()
        got = await anext(body)
        assert got == encode_event(EVENTS[0])
        seen_by_client.set()
        async for data in body:
            got += data
    await loop.close()
    assert got == SSE
    assert len(upstream.received) == 1


@CHAINED
async def test_reply_of_a_later_filter_passes_the_filters_before_it(real_envoy: RealEnvoy) -> None:
    statuses: list[int] = []

    async def look(request: HttpRequest, below: HttpBelow) -> HttpResponse:
        response = await below(request)
        statuses.append(response.status)
        return response

    async def refuse(_: HttpRequest, __: HttpBelow) -> HttpResponse:
        return HttpResponse.of_json(403, {"no": True})

    segments = {"a": segment(http_filter(look)), "b": segment(http_filter(refuse))}
    async with gateway(real_envoy, "two", answer_ok, **segments) as (client, upstream):
        response = await client.post(URL, content=b"q")
    assert (response.status_code, response.json(), statuses) == (403, {"no": True}, [403])
    assert upstream.received == []


@CHAINED
async def test_streamed_reply_passes_filters_that_never_saw_the_request(real_envoy: RealEnvoy) -> None:
    async def stream(_: HttpRequest, __: HttpBelow) -> HttpResponse:
        return HttpResponse(200, {"content-type": "text/event-stream"}, one_chunk(b"data: 1\n\n"))

    passing = segment(http_filter(pass_http))
    segments = {"a": passing, "b": segment(http_filter(stream)), "c": passing, "d": passing}
    async with gateway(real_envoy, "four", answer_ok, **segments) as (client, upstream):
        assert (await client.post(URL, content=b"q" * 100_000)).content == b"data: 1\n\n"
    assert upstream.received == []


# ---- limits and errors


@pytest.mark.parametrize("declared", [True, False])
async def test_request_of_12_mb_is_answered_413_in_json(real_envoy: RealEnvoy, declared: bool) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(12):
            yield b"x" * 1_000_000

    content: Any = b"x" * 12_000_000 if declared else pieces()
    async with gateway(real_envoy, "one", answer_ok, a=segment(http_filter(pass_http))) as (client, upstream):
        response = await client.post(URL, content=content)
    assert (response.status_code, response.json()["error"]["code"]) == (413, "request_too_large")
    assert upstream.received == []


async def test_unreachable_upstream_is_an_api_error(real_envoy: RealEnvoy) -> None:
    async def cut(_: Received, answer: Answerer) -> None:
        answer.cut()

    for stream in (False, True):
        async with gateway(real_envoy, "one", cut, a=segment(turn_filter(pass_turn))) as (client, _):
            response = await client.post(URL, json={"model": "m", "stream": stream})
        assert (response.status_code, response.headers["content-type"]) == (503, "application/json")
        assert response.json()["error"]["type"] == "server_error"


async def test_filter_that_raises_is_a_500_in_json(real_envoy: RealEnvoy) -> None:
    async def bug(_: HttpRequest, __: HttpBelow) -> HttpResponse:
        raise KeyError("secret")

    with capture_logs() as logs:
        async with gateway(real_envoy, "one", answer_ok, a=segment(http_filter(bug))) as (client, _):
            response = await client.post(URL, content=b"q")
    assert (response.status_code, response.json()["error"]["code"]) == (500, "internal_error")
    assert [log["event"] for log in logs] == ["a filter failed"]


async def test_processor_that_is_down_lets_nothing_through(real_envoy: RealEnvoy) -> None:
    transport = httpx.AsyncHTTPTransport(uds=str(real_envoy.listener("one")))
    async with (
        running_upstream(real_envoy.upstream, answer_ok) as upstream,
        httpx.AsyncClient(transport=transport, timeout=WAIT_S) as client,
    ):
        assert (await client.post(URL, content=b"q")).status_code >= 500
    assert upstream.received == []


async def test_unknown_segment_lets_nothing_through(real_envoy: RealEnvoy) -> None:
    with capture_logs() as logs:
        async with gateway(real_envoy, "unknown", answer_ok, a=segment(http_filter(pass_http))) as (client, upstream):
            assert (await client.post(URL, content=b"q")).status_code == 500
    assert logs == [
        {"event": "a stream for an unknown segment", "log_level": "error", "segment": "nobody", "known": ["a"]}
    ]
    assert upstream.received == []


def dying(seen_by_client: asyncio.Event) -> Answer:
    async def answer(_: Received, answerer: Answerer) -> None:
        await answerer.start(200, {"content-type": "text/event-stream"})
        await answerer.data(b"".join(encode_event(event) for event in EVENTS[:5]))
        await seen_by_client.wait()
        answerer.cut()

    return answer


async def read_all(response: httpx.Response, seen_by_client: asyncio.Event) -> str:
    got = b""
    async for data in response.aiter_raw():
        got += data
        seen_by_client.set()
    return got.decode()


async def test_upstream_that_dies_mid_stream_ends_in_response_failed_over_the_loop_listener(
    real_envoy: RealEnvoy,
) -> None:
    loop = LoopClient(str(real_envoy.listener("loop")))
    seen = asyncio.Event()
    async with (
        gateway(real_envoy, "one", dying(seen), a=segment(turn_filter(pass_turn), loop=loop)) as (client, _),
        client.stream("POST", URL, json={"model": "m", "stream": True}) as response,
    ):
        text = await read_all(response, seen)
    await loop.close()
    *_, last, _ = text.split("\n\n")
    failed = json.loads(last.partition("data: ")[2])
    assert failed["type"] == "response.failed"
    assert failed["response"]["error"]["message"] == "The inference server broke off its answer."
    assert text.count("event: response.output_item.done") == 1


async def test_upstream_that_dies_mid_stream_resets_the_client_of_a_held_request(real_envoy: RealEnvoy) -> None:
    seen = asyncio.Event()
    async with (
        gateway(real_envoy, "one", dying(seen), a=segment(turn_filter(pass_turn))) as (client, _),
        client.stream("POST", URL, json={"model": "m", "stream": True}) as response,
    ):
        with pytest.raises(httpx.RemoteProtocolError):
            await read_all(response, seen)


# ---- ending


@pytest.mark.parametrize("through_loop", [True, False])
async def test_client_that_disconnects_cancels_filters_and_upstream(real_envoy: RealEnvoy, through_loop: bool) -> None:
    left, closed = asyncio.Event(), asyncio.Event()

    async def stalls(_: Received, answer: Answerer) -> None:
        await answer.start(200, {"content-type": "text/event-stream"})
        await answer.data(encode_event(EVENTS[0]))
        await answer.until_left()
        left.set()

    async def watch(turn: TurnRequest, below: Below) -> AsyncIterator[Event]:
        try:
            async for event in below(turn):
                yield event
        finally:
            closed.set()

    loop = LoopClient(str(real_envoy.listener("loop")))
    watched = segment(turn_filter(watch), loop=loop if through_loop else None)
    async with gateway(real_envoy, "one", stalls, a=watched) as (client, _):
        async with client.stream("POST", URL, json={"model": "m", "stream": True}) as response:
            await anext(response.aiter_raw())
        async with asyncio.timeout(1):
            await left.wait()
            await closed.wait()
    await loop.close()


async def test_exchanges_leave_no_task_behind(real_envoy: RealEnvoy) -> None:
    async with gateway(real_envoy, "one", answer_events, a=segment(turn_filter(pass_turn))) as (client, _):
        await client.post(URL, json={"model": "m", "stream": True})
        before = len(asyncio.all_tasks())
        for _ in range(50):
            await client.post(URL, json={"model": "m", "stream": True})
        assert len(asyncio.all_tasks()) <= before + 2


# ---- chaining: every byte arrives


SIZES = [1, 100, 6_000, 64_000, 130_000, 1_000_000, 2_000_000, 0]
CONNECTIONS = 32


@pytest.mark.parametrize("listener", ["one", *(pytest.param(name, marks=CHAINED) for name in ("two", "four", "five"))])
async def test_bodies_are_intact_through_chained_filters(real_envoy: RealEnvoy, listener: str) -> None:
    passing = segment(http_filter(pass_http))
    segments = dict.fromkeys("abcde", passing)
    altered: list[tuple[int, int]] = []

    async def exchange(client: httpx.AsyncClient, number: int) -> None:
        size = SIZES[number % len(SIZES)] if number % CONNECTIONS < 24 else SIZES[number % 4]
        body = hashlib.sha256(str(number).encode()).digest() * (size // 32 + 1)
        response = await client.post(URL, content=body[:size])
        if response.content != body[:size]:
            altered.append((number, len(response.content)))

    async with gateway(real_envoy, listener, answer_echo, **segments) as (client, upstream):
        client.timeout = httpx.Timeout(60)
        async with asyncio.TaskGroup() as tasks:
            for number in range(2 * CONNECTIONS):
                tasks.create_task(exchange(client, number))
    assert altered == []
    assert len(upstream.received) == 2 * CONNECTIONS
    if may_keep_content_length():
        lengths = [(got.headers.get("content-length"), str(len(got.body))) for got in upstream.received]
        assert [length for length, right in lengths if length != right] == []
