from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attache_core import json_codec
from attache_core.errors import AttacheError, ClientError, UpstreamError
from attache_core.events.delta_run import one_by_one
from attache_core.events.event import Event, terminal_event
from attache_core.events.event_stream import MAX_BATCH_BYTES, batches
from attache_core.events.sse import encode_event
from attache_core.types.turn import Facts, TurnRequest
from attache_filters.extproc import codec
from attache_filters.extproc.codec import decode_answer, decode_turn, encode_answer, encode_turn
from attache_filters.sdk.http import HttpRequest, HttpResponse, one_chunk
from attache_filters.testing import text_events

EVENTS = text_events("héllo \u2028 wörld")
SSE = b"".join(encode_event(event) for event in EVENTS)
SSE_HEADERS = {"content-type": "text/event-stream; charset=utf-8"}


async def chunks(data: Iterable[bytes]) -> AsyncIterator[bytes]:
    for chunk in data:
        yield chunk


async def generate(events: Iterable[Event]) -> AsyncGenerator[Event, None]:
    for event in events:
        yield event


async def decoded(response: HttpResponse) -> list[Event]:
    return [event async for event in decode_answer(response)]


FACTS = st.builds(
    Facts,
    response_id=st.none() | st.from_regex(r"resp_[a-z0-9]{1,20}", fullmatch=True),
    history_items=st.none() | st.integers(0, 10_000),
    tenant=st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20),
    stored=st.booleans(),
)


@settings(max_examples=50, deadline=None)
@given(FACTS, st.booleans())
def test_turn_survives_the_way_through_http(facts: Facts, stream: bool) -> None:
    turn = TurnRequest({"model": "m", "stream": stream, "x": [1, None]}, {"authorization": "Bearer k"}, facts)
    request = encode_turn(turn, method="POST", path="/v1/responses?a=b")
    again = decode_turn(request)
    accept = "text/event-stream" if stream else "application/json"
    assert request.path == "/v1/responses?a=b"
    assert again == TurnRequest(
        turn.body,
        {"authorization": "Bearer k", "content-type": "application/json", "accept": accept},
        facts,
    )
    assert all(value.isascii() for value in request.headers.values())


def test_headers_of_one_connection_stop_at_the_host() -> None:
    headers = {
        "connection": "keep-alive",
        "content-length": "2",
        "transfer-encoding": "chunked",
        "accept-encoding": "gzip",
        "content-encoding": "gzip",
        "x-attache-new-fact": "1",
        "x-request-id": "r",
    }
    assert decode_turn(HttpRequest("POST", "/", headers, b"{}")).headers == {"x-request-id": "r"}


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b"\xff"])
def test_body_that_is_no_json_object_is_a_client_error(body: bytes) -> None:
    with pytest.raises(ClientError) as caught:
        decode_turn(HttpRequest("POST", "/", {}, body))
    assert caught.value.http_status == 400


@pytest.mark.parametrize("at", range(0, len(SSE) + 1, 7))
async def test_stream_cut_anywhere_gives_the_same_events(at: int) -> None:
    assert await decoded(HttpResponse(200, SSE_HEADERS, chunks([SSE[:at], SSE[at:]]))) == EVENTS


async def test_stream_of_single_bytes_gives_the_same_events() -> None:
    single = (SSE[at : at + 1] for at in range(len(SSE)))
    assert await decoded(HttpResponse(200, SSE_HEADERS, chunks(single))) == EVENTS


async def test_much_that_comes_at_once_is_decoded_in_bounded_batches() -> None:
    given = [Event("response.output_text.delta", {"type": "response.output_text.delta", "delta": "word "})] * 4000
    stream = b"".join(map(encode_event, given))
    response = HttpResponse(200, SSE_HEADERS, chunks([stream]))
    told = [list(one_by_one(batch)) async for batch in batches(decode_answer(response))]
    assert [event for batch in told for event in batch] == given
    assert len(told) == ceil(len(stream) / MAX_BATCH_BYTES) > 1
    frame = len(encode_event(given[0]))
    assert max(map(len, told)) <= MAX_BATCH_BYTES // frame + 1


async def test_done_marker_is_no_event_and_types_come_from_the_payload() -> None:
    body = b'data: {"type":"response.created"}\n\ndata: [DONE]\n\n'
    assert await decoded(HttpResponse(200, SSE_HEADERS, one_chunk(body))) == [
        Event("response.created", {"type": "response.created"})
    ]


async def test_streamed_answer_is_read_back_as_the_same_events() -> None:
    assert await decoded(await encode_answer(generate(EVENTS), stream=True)) == EVENTS


async def test_plain_answer_is_read_back_as_its_terminal_event() -> None:
    response = EVENTS[-1].data["response"]
    assert await decoded(await encode_answer(generate(EVENTS), stream=False)) == [terminal_event(response)]


async def test_answer_that_never_ends_is_an_upstream_error_when_plain() -> None:
    with pytest.raises(UpstreamError) as caught:
        await encode_answer(generate(EVENTS[:-1]), stream=False)
    assert caught.value.code == "upstream_broke_off"


@pytest.mark.parametrize("stream", [False, True])
async def test_terminal_event_of_several_rounds_is_read_up_to_one_limit(
    monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    monkeypatch.setattr(codec, "MAX_ANSWER_BYTES", 20 * 1024 * 1024)
    item = {"type": "message", "content": [{"type": "output_text", "text": "x" * 18_000_000}]}
    answer = terminal_event({"status": "completed", "output": [item]})
    assert await decoded(await encode_answer(generate([answer]), stream=stream)) == [answer]

    monkeypatch.setattr(codec, "MAX_ANSWER_BYTES", 17_000_000)
    with pytest.raises(UpstreamError) as caught:
        await decoded(await encode_answer(generate([answer]), stream=stream))
    assert caught.value.code == "upstream_limit"


async def test_answer_headers_are_its_own() -> None:
    response = await encode_answer(generate(EVENTS), stream=True)
    assert (response.status, response.headers) == (
        200,
        {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"},
    )


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        pytest.param({}, b"<html>", id="html"),
        pytest.param({}, b"[]", id="no object"),
        pytest.param(SSE_HEADERS, b"data: nope\n\n", id="event"),
        pytest.param({"content-encoding": "gzip"}, b"\x1f\x8b", id="compressed"),
    ],
)
async def test_garbage_is_an_upstream_error_without_its_words(headers: dict[str, str], body: bytes) -> None:
    with pytest.raises(UpstreamError) as caught:
        await decoded(HttpResponse(200, headers, one_chunk(body)))
    assert (caught.value.http_status, caught.value.code) == (502, "bad_upstream_response")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            json_codec.encode({"error": {"message": "Slow down.", "code": "busy"}}),
            "Slow down.",
        ),
        (b"<html>", "The request failed with HTTP status 429."),
        (b"", "The request failed with HTTP status 429."),
        (b"x" * 100_000, "The request failed with HTTP status 429."),
    ],
)
async def test_error_response_is_raised_with_the_headers_that_belong_to_it(body: bytes, message: str) -> None:
    kept = {"retry-after": "3", "x-ratelimit-remaining": "0", "x-should-retry": "false"}
    headers = {**kept, "set-cookie": "s"}
    with pytest.raises(AttacheError) as caught:
        await decoded(HttpResponse(429, headers, one_chunk(body)))
    assert (caught.value.http_status, caught.value.message) == (429, message)
    assert caught.value.headers == kept


async def test_error_body_that_breaks_off_is_still_an_error_of_its_status() -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b'{"error":'
        raise UpstreamError("broke off")

    with pytest.raises(AttacheError) as caught:
        await decoded(HttpResponse(500, {}, broken()))
    assert caught.value.message == "The request failed with HTTP status 500."
