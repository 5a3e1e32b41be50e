from __future__ import annotations

import asyncio
import gc
import itertools
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import zstandard
from structlog.testing import capture_logs

from attache_core.errors import AttacheError, ClientError, StoreError
from attache_core.events.event import Event
from attache_core.events.sse import encode_event
from attache_core.turn.below import Below
from attache_core.types.turn import TurnRequest
from attache_filters.extproc import host
from attache_filters.extproc.host import ResponseBrokenError, SegmentHost
from attache_filters.extproc.loop_client import LoopClient
from attache_filters.extproc.session import LocalProtocolError, RemoteProtocolError
from attache_filters.extproc.stream_end import StreamEndedError
from attache_filters.sdk.http import HttpBelow, HttpRequest, HttpResponse
from attache_filters.testing import text_events
from filters.extproc import from_envoy as envoy
from filters.extproc.hosting import (
    WAIT_S,
    FakeEnvoy,
    breaking_body,
    emitting,
    hosted,
    http_filter,
    pass_http,
    pass_turn,
    segment,
    turn_filter,
)

EVENTS = text_events("hello")
SSE = b"".join(encode_event(event) for event in EVENTS)
SSE_HEADERS = {"content-type": "text/event-stream"}
JSON_HEADERS = {"content-type": "application/json"}


def turn(**fields: Any) -> list[Any]:
    body = json.dumps({"model": "m", **fields}).encode()
    return [envoy.request_headers({"content-type": "application/json"}), envoy.request_body(body, end=True)]


def error(message: str, *, code: str | None, kind: str = "server_error", param: str | None = None) -> bytes:
    body = {"error": {"message": message, "type": kind, "param": param, "code": code}}
    return json.dumps(body, separators=(",", ":")).encode()


def immediate(status: int, body: bytes, headers: dict[str, str] | None = None) -> tuple[object, ...]:
    return ("immediate_response", status, {**JSON_HEADERS, **(headers or {})}, body)


# ---- through


async def test_http_exchange_goes_through_with_headers_and_bytes_kept() -> None:
    async with hosted(segment(http_filter(pass_http))) as gateway:
        gateway.says(
            envoy.request_headers({"content-length": "3", "accept-encoding": "br", "x-a": "1"}),
            envoy.request_body(b"abc"),
            envoy.request_body(b"", end=True),
        )
        assert await gateway.gets(2) == [
            ("request_headers", {"content-length": "3"}, ["accept-encoding"]),
            ("request_body", b"abc", True),
        ]
        gateway.says(
            envoy.response_headers(201, {"content-length": "2", "x-b": "2", "content-encoding": "br"}),
            envoy.response_body(b"hi", end=True),
        )
        head, body = await gateway.gets_response()
        assert (head, body) == (("response_headers", {}, ["content-length"]), b"hi")


async def test_request_of_a_filters_own_keeps_the_id_of_its_exchange() -> None:
    async def other_request(request: HttpRequest, below: HttpBelow) -> HttpResponse:
        return await below(HttpRequest("GET", "/v1/models", {"x-request-id": "theirs", "x-b": "2"}))

    async with hosted(segment(http_filter(other_request))) as gateway:
        gateway.says(envoy.get_request({"x-request-id": "ours", "x-a": "1"}))
        ((kind, changed, gone),) = await gateway.gets(1)
        assert (kind, changed, gone) == ("request_headers", {"x-b": "2"}, ["x-a"])


async def test_get_goes_through() -> None:
    async with hosted(segment(http_filter(pass_http))) as gateway:
        gateway.says(envoy.get_request())
        assert await gateway.gets(1) == [("request_headers", {}, [])]
        gateway.says(envoy.response_headers(204, end=True))
        assert await gateway.gets(1) == [("response_headers", {}, [])]


async def test_streamed_turn_goes_through_as_canonical_events() -> None:
    async with hosted(segment(turn_filter(pass_turn))) as gateway:
        gateway.says(*turn(stream=True))
        head, body = await gateway.gets(2)
        assert head[0] == "request_headers"
        assert body == ("request_body", b'{"model":"m","stream":true}', True)
        gateway.says(envoy.response_headers(200, SSE_HEADERS))
        for at in range(0, len(SSE), 100):
            gateway.says(envoy.response_body(SSE[at : at + 100]))
        gateway.says(envoy.response_body(b"", end=True))
        head, streamed = await gateway.gets_response()
        assert head[1] == {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
        assert streamed == SSE


async def test_exchange_that_ended_does_not_wait_for_the_collector_of_cycles() -> None:
    gc.collect()
    gc.disable()
    try:
        async with hosted(segment(turn_filter(pass_turn))) as gateway:
            gateway.says(*turn())
            await gateway.gets(2)
            gateway.says(
                envoy.response_headers(200, JSON_HEADERS), envoy.response_body(b'{"object":"response"}', end=True)
            )
            await gateway.gets_response()
        assert [each for each in gc.get_objects() if isinstance(each, SegmentHost)] == []
    finally:
        gc.enable()


async def test_plain_turn_goes_through_as_json() -> None:
    async with hosted(segment(turn_filter(pass_turn), turn_filter(pass_turn))) as gateway:
        gateway.says(*turn())
        await gateway.gets(2)
        answer = json.dumps(EVENTS[-1].data["response"], separators=(",", ":")).encode()
        gateway.says(envoy.response_headers(200, JSON_HEADERS), envoy.response_body(answer, end=True))
        assert await gateway.gets_response() == (("response_headers", {}, []), answer)


async def test_events_that_came_together_leave_together() -> None:
    async with hosted(segment(turn_filter(pass_turn))) as gateway:
        gateway.says(*turn(stream=True))
        await gateway.gets(2)
        gateway.says(envoy.response_headers(200, SSE_HEADERS), envoy.response_body(SSE, end=True))
        await gateway.gets_response()
        assert len(gateway.sent) <= 2 + 4  # the request; the head, the first event, the others, the end


# ---- errors: one place answers


@pytest.mark.parametrize(
    ("failure", "answer"),
    [
        pytest.param(
            ClientError("No such thing.", http_status=404, code="not_found", param="input"),
            immediate(404, error("No such thing.", code="not_found", kind="invalid_request_error", param="input")),
            id="client",
        ),
        pytest.param(
            StoreError("The store is out of reach."),
            immediate(503, error("The store is out of reach.", code="store_unavailable"), {"retry-after": "1"}),
            id="with a header",
        ),
        pytest.param(
            KeyError("secret"),
            immediate(500, error("The gateway failed to process this request.", code="internal_error")),
            id="bug",
        ),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
async def test_error_before_the_first_event_is_an_http_error(
    failure: Exception, answer: tuple[object, ...], stream: bool
) -> None:
    with capture_logs() as logs:
        async with hosted(segment(turn_filter(pass_turn), turn_filter(emitting(then=failure)))) as gateway:
            gateway.says(*turn(stream=stream))
            assert await gateway.gets(1) == [answer]
    assert len(logs) == (0 if isinstance(failure, AttacheError) else 1)


async def test_failure_after_the_first_event_ends_the_stream_properly() -> None:
    fail = emitting(*EVENTS[:5], then=KeyError("secret"))
    with capture_logs() as logs:
        async with hosted(segment(turn_filter(pass_turn), turn_filter(fail))) as gateway:
            gateway.says(*turn(stream=True))
            head, body = await gateway.gets_response()
    assert head[0] == "reply_headers"
    types = [line.removeprefix("event: ") for line in body.decode().splitlines() if line.startswith("event: ")]
    assert types[:5] == [event.type for event in EVENTS[:5]]
    assert types[-1] == "response.failed"
    assert "response.output_item.done" in types
    assert "secret" not in body.decode()
    assert [log["event"] for log in logs] == ["a filter failed"]


async def test_malformed_request_never_goes_on() -> None:
    async with hosted(segment(turn_filter(pass_turn))) as gateway:
        gateway.says(envoy.request_headers(), envoy.request_body(b"{nope", end=True))
        ((kind, status, _, _),) = await gateway.gets(1)
        assert (kind, status) == ("immediate_response", 400)


async def test_upstream_error_becomes_the_api_error_with_its_status() -> None:
    async with hosted(segment(turn_filter(pass_turn))) as gateway:
        gateway.says(*turn())
        await gateway.gets(2)
        gateway.says(
            envoy.response_headers(429, {**JSON_HEADERS, "retry-after": "7", "x-secret": "s"}),
            envoy.response_body(error("Slow down.", code="rate_limit_exceeded"), end=True),
        )
        head, body = await gateway.gets_response()
        assert head == ("response_headers", {}, ["x-secret"])
        assert body == error("Slow down.", code="rate_limit_exceeded")


async def test_plain_text_of_an_unreachable_upstream_becomes_json() -> None:
    async with hosted(segment(turn_filter(pass_turn))) as gateway:
        gateway.says(*turn(stream=True))
        await gateway.gets(2)
        gateway.says(
            envoy.response_headers(503, {"content-type": "text/plain"}),
            envoy.response_body(b"upstream connect error", end=True),
        )
        head, body = await gateway.gets_response()
        assert head == ("response_headers", JSON_HEADERS, [])
        assert body == error("The request failed with HTTP status 503.", code=None)


async def test_error_of_a_response_without_a_body_gets_one() -> None:
    async with hosted(segment(turn_filter(pass_turn))) as gateway:
        gateway.says(*turn())
        await gateway.gets(2)
        gateway.says(envoy.response_headers(401, {"content-length": "0"}, end=True))
        message = error("The request failed with HTTP status 401.", code=None, kind="invalid_request_error")
        assert await gateway.gets(1) == [("response_headers", JSON_HEADERS, ["content-length"], message)]


async def test_http_filter_sees_errors_below_as_responses() -> None:
    seen: list[int] = []

    async def look(request: HttpRequest, below: HttpBelow) -> HttpResponse:
        response = await below(request)
        seen.append(response.status)
        return response

    fail = emitting(then=ClientError("No.", http_status=409))
    async with hosted(segment(http_filter(look), turn_filter(fail))) as gateway:
        gateway.says(*turn())
        assert await gateway.gets(1) == [immediate(409, error("No.", code=None, kind="invalid_request_error"))]
    assert seen == [409]


async def test_body_that_breaks_after_it_began_breaks_the_exchange_off() -> None:
    async def broken(_: HttpRequest, __: HttpBelow) -> HttpResponse:
        return HttpResponse(200, SSE_HEADERS, breaking_body(b"data: 1\n\n"))

    gateway = FakeEnvoy()
    gateway.says(envoy.get_request())
    with capture_logs(), pytest.raises(ExceptionGroup) as caught:
        async with asyncio.timeout(WAIT_S):
            await SegmentHost(segment(http_filter(broken)), gateway).run()
    assert caught.group_contains(ResponseBrokenError)


async def test_body_that_breaks_before_it_began_is_an_error_answer() -> None:
    async def broken(_: HttpRequest, __: HttpBelow) -> HttpResponse:
        return HttpResponse(200, {}, breaking_body())

    with capture_logs():
        async with hosted(segment(http_filter(broken))) as gateway:
            gateway.says(envoy.get_request())
            message = error("The gateway failed to process this request.", code="internal_error")
            assert await gateway.gets(1) == [immediate(500, message)]


# ---- limits


TOO_LARGE = immediate(
    413,
    error(
        "The request body is too large: at most 10 bytes are accepted.",
        code="request_too_large",
        kind="invalid_request_error",
    ),
)


@pytest.mark.parametrize("cut", [1, 4, 11])
async def test_body_over_the_limit_is_refused_once_it_has_been_read_whole(cut: int) -> None:
    async with hosted(segment(http_filter(pass_http), max_request_bytes=10)) as gateway:
        body = [envoy.request_body(b"x" * cut) for _ in range(-(-11 // cut))]
        gateway.says(envoy.request_headers({"content-length": "11"}), *body)
        assert gateway.sent == []
        gateway.says(envoy.request_body(b"y" * 100), envoy.request_body(b"", end=True))
        assert await gateway.gets(1) == [TOO_LARGE]
    assert len(gateway.sent) == 1


async def test_body_far_over_the_limit_is_refused_before_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "MAX_DROPPED_BYTES", 100)
    async with hosted(segment(http_filter(pass_http), max_request_bytes=10)) as gateway:
        gateway.says(envoy.request_headers(), envoy.request_body(b"x" * 111))
        assert await gateway.gets(1) == [TOO_LARGE]
        gateway.says(envoy.request_body(b"y" * 100), envoy.request_body(b"", end=True))
    assert len(gateway.sent) == 1


async def test_body_at_the_limit_passes() -> None:
    async with hosted(segment(http_filter(pass_http), max_request_bytes=10)) as gateway:
        gateway.says(envoy.request_headers({"content-length": "10"}), envoy.request_body(b"x" * 10, end=True))
        assert await gateway.gets(2) == [
            ("request_headers", {"content-length": "10"}, []),
            ("request_body", b"x" * 10, True),
        ]


async def test_coded_body_is_bounded_by_what_it_becomes() -> None:
    head = envoy.request_headers({"content-encoding": "zstd"})
    async with hosted(segment(http_filter(pass_http), max_request_bytes=1000)) as gateway:
        gateway.says(head, envoy.request_body(zstandard.compress(b"x" * 1000), end=True))
        assert await gateway.gets(2) == [
            ("request_headers", {"content-length": "1000"}, ["content-encoding"]),
            ("request_body", b"x" * 1000, True),
        ]
    async with hosted(segment(http_filter(pass_http), max_request_bytes=1000)) as gateway:
        gateway.says(head, envoy.request_body(zstandard.compress(b"x" * 1001), end=True))
        ((kind, status, _, _),) = await gateway.gets(1)
        assert (kind, status) == ("immediate_response", 413)


TOO_LARGE_REPLY = "The response became larger than 5000 bytes, which is all that this gateway sends."


async def endless(turn: TurnRequest, below: Below) -> AsyncIterator[Event]:
    for event in EVENTS[:4]:
        yield event
    for number in itertools.count(4):
        yield Event(EVENTS[4].type, {**EVENTS[4].data, "sequence_number": number})


def seeing(seen: list[Event]) -> Any:
    async def see(turn: TurnRequest, below: Below) -> AsyncIterator[Event]:
        async for event in below(turn):
            seen.append(event)
            yield event

    return turn_filter(see)


async def test_streamed_reply_over_the_limit_ends_in_response_failed_that_the_filters_above_see_too() -> None:
    seen: list[Event] = []
    filters = (seeing(seen), turn_filter(pass_turn), turn_filter(endless))
    async with hosted(segment(*filters, max_reply_bytes=5000)) as gateway:
        gateway.says(*turn(stream=True))
        head, body = await gateway.gets_response()
    assert head[0] == "reply_headers"
    events = [json.loads(line[6:]) for line in body.decode().splitlines() if line.startswith("data: ")]
    assert events == [event.data for event in seen]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert [event["type"] for event in events[-4:]] == [
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.failed",
    ]
    assert events[-1]["response"]["error"] == {"code": "response_too_large", "message": TOO_LARGE_REPLY}
    assert len(body) < 12_000


async def test_whole_reply_over_the_limit_is_an_error() -> None:
    async def large(_: HttpRequest, __: HttpBelow) -> HttpResponse:
        return HttpResponse.of_json(200, "x" * 5000)

    answer = error(TOO_LARGE_REPLY, code="response_too_large")
    async with hosted(segment(http_filter(large), max_reply_bytes=5000)) as gateway:
        gateway.says(envoy.get_request())
        assert await gateway.gets(1) == [immediate(502, answer)]


async def test_response_that_was_made_over_the_limit_is_an_error() -> None:
    async def enlarge(request: HttpRequest, below: HttpBelow) -> HttpResponse:
        await below(request)
        return HttpResponse.of_json(200, "x" * 6000)

    async with hosted(segment(http_filter(enlarge), max_reply_bytes=5000)) as gateway:
        gateway.says(envoy.get_request())
        await gateway.gets(1)
        gateway.says(envoy.response_headers(200, {}), envoy.response_body(b"hi", end=True))
        head, body = await gateway.gets_response()
    assert (head, body) == (
        ("response_headers", {":status": "502", **JSON_HEADERS}, []),
        error(TOO_LARGE_REPLY, code="response_too_large"),
    )


@pytest.mark.parametrize("content_type", ["text/event-stream", "application/octet-stream"])
async def test_bytes_over_the_limit_that_are_no_turn_break_the_exchange_off(content_type: str) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 1000

    async def stream(_: HttpRequest, __: HttpBelow) -> HttpResponse:
        return HttpResponse(200, {"content-type": content_type}, pieces())

    gateway = FakeEnvoy()
    gateway.says(envoy.get_request())
    with pytest.raises(ExceptionGroup) as caught:
        async with asyncio.timeout(WAIT_S):
            await SegmentHost(segment(http_filter(stream), max_reply_bytes=3_000_000), gateway).run()
    assert caught.group_contains(ResponseBrokenError)


async def test_response_that_passes_is_not_limited() -> None:
    async with hosted(segment(http_filter(pass_http), max_reply_bytes=10)) as gateway:
        gateway.says(envoy.get_request())
        await gateway.gets(1)
        gateway.says(envoy.response_headers(200, {}))
        for _ in range(10):
            gateway.says(envoy.response_body(b"x" * 1000))
        gateway.says(envoy.response_body(b"", end=True))
        assert (await gateway.gets_response())[1] == b"x" * 10_000


# ---- pages


@pytest.mark.parametrize("content_type", ["text/plain", "text/plain;application/json", "multipart/form-data", None])
async def test_post_of_a_page_that_is_no_json_is_refused(content_type: str | None) -> None:
    headers = {"origin": "https://evil.example", **({"content-type": content_type} if content_type else {})}
    async with hosted(segment(turn_filter(pass_turn))) as gateway:
        gateway.says(envoy.request_headers(headers), envoy.request_body(b'{"model":"m"}', end=True))
        message = error(
            "A request with an 'Origin' header must have the content type 'application/json'.",
            code="unsupported_content_type",
            kind="invalid_request_error",
        )
        assert await gateway.gets(1) == [immediate(415, message)]


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://ui.example", "content-type": "application/json"},
        {"origin": "null", "content-type": "Application/JSON; charset=utf-8"},
        {"content-type": "text/plain"},
        {},
    ],
)
async def test_post_that_no_page_can_send_unasked_goes_on(headers: dict[str, str]) -> None:
    async with hosted(segment(turn_filter(pass_turn))) as gateway:
        gateway.says(envoy.request_headers(headers), envoy.request_body(b'{"model":"m"}', end=True))
        assert (await gateway.gets(2))[1] == ("request_body", b'{"model":"m"}', True)


async def test_get_of_a_page_goes_on() -> None:
    async with hosted(segment(http_filter(pass_http))) as gateway:
        gateway.says(envoy.get_request({"origin": "https://ui.example"}))
        assert (await gateway.gets(1))[0][0] == "request_headers"


# ---- below


async def twice(turn: TurnRequest, below: Below) -> AsyncIterator[Event]:
    async for _ in below(turn):
        pass
    async for event in below(turn):
        yield event


async def test_second_call_below_without_a_loop_listener_is_logged_and_not_explained_to_the_client() -> None:
    with capture_logs() as logs:
        async with hosted(segment(turn_filter(twice))) as gateway:
            gateway.says(*turn())
            await gateway.gets(2)
            gateway.says(
                envoy.response_headers(200, JSON_HEADERS), envoy.response_body(b'{"status":"completed"}', end=True)
            )
            _, body = await gateway.gets_response()
    assert body == error("The gateway failed to process this request.", code="internal_error")
    (logged,) = [str(log["exc_info"]) for log in logs]
    assert "'test' (turn_filter.<locals>.Function)" in logged
    assert "calls_below_again = True" in logged


async def test_loop_listener_that_is_not_there_is_a_503(tmp_path: Path) -> None:
    loop = LoopClient(str(tmp_path / "nobody"))
    async with hosted(segment(turn_filter(pass_turn), loop=loop)) as gateway:
        gateway.says(*turn(stream=True))
        message = error("The inference server is out of reach.", code="upstream_unavailable")
        assert await gateway.gets(1) == [immediate(503, message)]
    await loop.close()


async def test_reply_of_another_filter_while_the_request_is_held_walks_through() -> None:
    started = asyncio.Event()
    cancelled = asyncio.Event()

    async def wait(_: TurnRequest, __: Below) -> AsyncIterator[Event]:
        started.set()
        try:
            await asyncio.Event().wait()
            yield EVENTS[0]
        finally:
            cancelled.set()

    async with hosted(segment(turn_filter(wait))) as gateway:
        gateway.says(*turn())
        await started.wait()
        gateway.says(envoy.response_headers(408, {"x": "y"}), envoy.response_body(b"slow", end=True))
        assert await gateway.gets_response() == (("response_headers", {}, []), b"slow")
        assert cancelled.is_set()


async def test_response_without_a_request_walks_through() -> None:
    async with hosted(segment(turn_filter(pass_turn))) as gateway:
        gateway.says(envoy.response_headers(200, {"content-length": "2"}), envoy.response_body(b"ok"))
        gateway.says(envoy.response_trailers())
        assert await gateway.gets(3) == [
            ("response_headers", {}, []),
            ("response_body", b"ok", False),
            ("response_trailers",),
        ]


# ---- ending


@pytest.mark.parametrize("end", ["half-close", "cancel"])
async def test_end_of_the_stream_cancels_the_chain_and_closes_everything_in_reverse(end: str) -> None:
    closed: list[str] = []
    started = asyncio.Event()

    def waiting(name: str) -> Any:
        async def run(turn: TurnRequest, below: Below) -> AsyncIterator[Event]:
            try:
                started.set()
                async for event in below(turn):
                    yield event
            finally:
                closed.append(name)
                if name == "inner":
                    raise RuntimeError("a clean-up that fails")

        return turn_filter(run)

    gateway = FakeEnvoy()
    host = SegmentHost(segment(waiting("outer"), waiting("inner")), gateway)
    with capture_logs():
        async with asyncio.timeout(WAIT_S), asyncio.TaskGroup() as tasks:
            running = tasks.create_task(host.run())
            gateway.says(*turn())
            await started.wait()
            await gateway.gets(2)
            if end == "cancel":
                running.cancel()
            else:
                gateway.closes()
    assert closed == ["inner", "outer"]


async def test_clean_up_that_asks_for_the_ended_stream_is_told_so() -> None:
    started = asyncio.Event()
    told: list[str] = []

    async def late(request: HttpRequest, below: HttpBelow) -> HttpResponse:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            try:
                await below(request)
            except StreamEndedError as ended:
                told.append(ended.message)
        raise AssertionError

    async with hosted(segment(http_filter(late))) as gateway:
        gateway.says(envoy.get_request())
        await started.wait()
    assert told == ["The exchange ended while the request was held."]


async def test_wait_for_a_response_of_the_ended_stream_fails_with_its_phase() -> None:
    told: list[str] = []

    async def shielded(request: HttpRequest, below: HttpBelow) -> HttpResponse:
        waiting: asyncio.Task[HttpResponse] = asyncio.Task(below(request))  # type: ignore[arg-type]  # a coroutine, as every `below` here
        try:
            return await asyncio.shield(waiting)
        finally:
            try:
                await waiting
            except StreamEndedError as ended:
                told.append(ended.message)

    async with hosted(segment(http_filter(shielded))) as gateway:
        gateway.says(envoy.get_request())
        await gateway.gets(1)
    assert told == ["The exchange ended while a response was awaited."]


async def test_client_that_left_is_noticed_while_nobody_reads_the_response() -> None:
    closed = asyncio.Event()

    async def never_reads(request: HttpRequest, below: HttpBelow) -> HttpResponse:
        try:
            await below(request)
            await asyncio.Event().wait()
        finally:
            closed.set()
        raise AssertionError

    gateway = FakeEnvoy()
    async with asyncio.timeout(WAIT_S), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(SegmentHost(segment(http_filter(never_reads)), gateway).run())
        gateway.says(envoy.get_request())
        await gateway.gets(1)
        gateway.says(envoy.response_headers())
        for _ in range(40):
            gateway.says(envoy.response_body(b"x" * 100_000))
        await gateway.reads(10)
        running.cancel()
    assert closed.is_set()
    assert gateway.unread > 20  # the rest was held back


async def test_response_that_nobody_wants_any_more_is_read_and_dropped() -> None:
    async def abandons(request: HttpRequest, below: HttpBelow) -> HttpResponse:
        await below(request)
        return HttpResponse.of_json(200, {})

    async with hosted(segment(http_filter(abandons))) as gateway:
        gateway.says(envoy.get_request())
        await gateway.gets(1)
        gateway.says(envoy.response_headers())
        assert (await gateway.gets_response())[1] == b"{}"
        for _ in range(40):
            gateway.says(envoy.response_body(b"x" * 100_000))
        gateway.says(envoy.response_body(b"", end=True))
    assert gateway.unread == 0


async def test_write_to_a_stream_that_is_over_ends_the_exchange_quietly() -> None:
    async with hosted(segment(http_filter(pass_http))) as gateway:
        gateway.broken = True
        gateway.says(envoy.get_request())
    assert gateway.sent == []


async def test_illegal_message_breaks_the_stream_off() -> None:
    gateway = FakeEnvoy()
    gateway.says(envoy.request_body(b"x"))
    with pytest.raises(ExceptionGroup) as caught:
        async with asyncio.timeout(WAIT_S):
            await SegmentHost(segment(http_filter(pass_http)), gateway).run()
    assert caught.group_contains(RemoteProtocolError)
    assert not caught.group_contains(LocalProtocolError)
