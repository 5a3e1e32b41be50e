from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from attache_core import json_codec
from attache_core.errors import AttacheError, ClientError, UpstreamError
from attache_core.events.event import Event, terminal_event
from attache_core.events.sse import encode_event
from attache_core.types.turn import Facts, TurnRequest
from attache_filters.extproc import codec
from attache_filters.extproc.codec import decode_answer, decode_turn, encode_answer, encode_turn
from attache_filters.extproc.content_coding import MAX_MEMBERS, decode_body
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
    tenant=st.text(min_size=1, max_size=20),
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
    headers = {"retry-after": "3", "x-ratelimit-remaining": "0", "set-cookie": "s"}
    with pytest.raises(AttacheError) as caught:
        await decoded(HttpResponse(429, headers, one_chunk(body)))
    assert (caught.value.http_status, caught.value.message) == (429, message)
    assert caught.value.headers == {"retry-after": "3", "x-ratelimit-remaining": "0"}


async def test_error_body_that_breaks_off_is_still_an_error_of_its_status() -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b'{"error":'
        raise UpstreamError("broke off")

    with pytest.raises(AttacheError) as caught:
        await decoded(HttpResponse(500, {}, broken()))
    assert caught.value.message == "The request failed with HTTP status 500."


def zstd_with_window_log(log: int) -> bytes:
    """More data than the window, of unknown length, so that the decoder must keep a whole window."""
    parameters = zstandard.ZstdCompressionParameters(window_log=log, write_content_size=0)
    encoder = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return encoder.compress(b"data") + encoder.flush()


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "GZIP": gzip.compress,
    "deflate": zlib.compress,
    "zstd": zstandard.compress,
    " Zstd": zstandard.compress,
}


@pytest.mark.parametrize("coding", COMPRESS)
def test_coded_body_is_decoded(coding: str) -> None:
    assert decode_body(COMPRESS[coding](b"data"), coding, 4) == b"data"


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(["gzip", "zstd"]), st.lists(st.binary(max_size=300), min_size=1, max_size=6))
def test_body_of_several_members_is_decoded_up_to_the_limit(coding: str, members: list[bytes]) -> None:
    coded, whole = b"".join(map(COMPRESS[coding], members)), b"".join(members)
    assert decode_body(coded, coding, len(whole)) == whole
    if whole:
        with pytest.raises(ClientError) as caught:
            decode_body(coded, coding, len(whole) - 1)
        assert caught.value.http_status == 413


def test_zstd_body_of_unknown_length_and_of_many_blocks_is_decoded() -> None:
    encoder = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    data = random.Random(1).randbytes(1_000_000)
    assert decode_body(encoder.compress(data) + encoder.flush(), "zstd", len(data)) == data


@pytest.mark.parametrize(
    ("body", "coding", "status"),
    [
        (gzip.compress(b"x" * 1_000_000), "gzip", 413),
        (gzip.compress(b"data")[:-9], "gzip", 400),
        (b"data", "gzip", 400),
        (b"", "gzip", 400),
        (gzip.compress(b"data") + b"junk", "gzip", 400),
        (gzip.compress(b"x" * 600) + gzip.compress(b"x" * 401), "gzip", 413),
        (gzip.compress(b"") * (MAX_MEMBERS + 1), "gzip", 400),
        (zstandard.compress(b"x" * 1_000_000), "zstd", 413),
        (zstandard.compress(b"x" * 600) + zstandard.compress(b"x" * 401), "zstd", 413),
        (zstandard.compress(b"data")[:-1], "zstd", 400),
        (zstandard.compress(b"data") + b"junk", "zstd", 400),
        (b"data", "zstd", 400),
        (b"", "zstd", 400),
        (zstandard.compress(b"") * (MAX_MEMBERS + 1), "zstd", 400),
        (zstd_with_window_log(24), "zstd", 400),
        (b"data", "br", 415),
        (b"data", "gzip, zstd", 415),
    ],
)
def test_coded_body_that_cannot_be_decoded_is_a_client_error(body: bytes, coding: str, status: int) -> None:
    with pytest.raises(ClientError) as caught:
        decode_body(body, coding, 1000)
    assert caught.value.http_status == status
