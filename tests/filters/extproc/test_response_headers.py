"""Response headers that filters ask for: on every kind of answer, from every place in the chain, and never below."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from attache_core.errors import UpstreamError
from attache_core.events.event import Event
from attache_core.events.sse import encode_event
from attache_core.json_codec import encode
from attache_core.turn.below import Below
from attache_core.types.turn import TurnRequest
from attache_filters.sdk.filter import Filter
from attache_filters.sdk.http import HttpBelow, HttpRequest, HttpResponse, one_chunk
from attache_filters.testing import RESPONSES_PATH, http_answering, run_http, text_events
from filters.extproc.hosting import emitting, http_filter, pass_http, pass_turn, turn_filter

EVENTS = text_events("Hi")
SSE = b"".join(encode_event(event) for event in EVENTS)
JSON = encode(EVENTS[-1].data["response"])
TOO_MANY = http_answering(
    429, {"content-type": "application/json", "retry-after": "7"}, b'{"error": {"message": "Slow down."}}'
)


def telling(name: str, value: str) -> Filter[Any]:
    def tell(turn: TurnRequest, below: Below) -> AsyncIterator[Event]:
        return below(turn.with_response_header(name, value))

    return turn_filter(tell)


def asked(*, stream: bool) -> HttpRequest:
    return HttpRequest("POST", RESPONSES_PATH, {}, encode({"model": "m", "input": "Hi", "stream": stream}))


def answer(*, stream: bool) -> HttpBelow:
    if stream:
        return http_answering(200, {"content-type": "text/event-stream"}, SSE)
    return http_answering(200, {"content-type": "application/json"}, JSON)


PLACES: list[list[Filter[Any]]] = [
    [telling("attache-a", "1")],
    [telling("attache-a", "1"), turn_filter(pass_turn)],
    [turn_filter(pass_turn), telling("attache-a", "1")],
    [turn_filter(pass_turn), http_filter(pass_http), telling("attache-a", "1")],
    [telling("attache-a", "1"), http_filter(pass_http), turn_filter(pass_turn)],
    [http_filter(pass_http), telling("attache-a", "1")],
]


@pytest.mark.parametrize("filters", PLACES)
@pytest.mark.parametrize("stream", [False, True])
async def test_header_that_a_filter_asks_for_is_on_the_answer(filters: list[Filter[Any]], stream: bool) -> None:
    response, _ = await run_http(filters, asked(stream=stream), answer(stream=stream))
    assert (response.status, response.headers["attache-a"]) == (200, "1")


@pytest.mark.parametrize("filters", PLACES)
@pytest.mark.parametrize("stream", [False, True])
async def test_header_that_a_filter_asks_for_is_on_the_error_beside_the_errors_own(
    filters: list[Filter[Any]], stream: bool
) -> None:
    response, _ = await run_http(filters, asked(stream=stream), TOO_MANY)
    assert (response.status, response.headers["attache-a"], response.headers["retry-after"]) == (429, "1", "7")


async def test_header_that_a_filter_asks_for_goes_up_from_another_segment() -> None:
    inner = answer(stream=True)

    async def segment(request: HttpRequest) -> HttpResponse:
        response, body = await run_http([telling("attache-b", "2"), turn_filter(pass_turn)], request, inner)
        return HttpResponse(response.status, response.headers, one_chunk(body))

    response, body = await run_http([telling("attache-a", "1"), turn_filter(pass_turn)], asked(stream=True), segment)
    assert (response.headers["attache-a"], response.headers["attache-b"], body) == ("1", "2", SSE)


async def test_headers_that_several_filters_ask_for_are_all_there_and_the_last_of_a_name_counts() -> None:
    filters = [telling("attache-a", "1"), telling("attache-b", "2"), telling("attache-a", "3")]
    response, _ = await run_http(filters, asked(stream=False), answer(stream=False))
    assert (response.headers["attache-a"], response.headers["attache-b"]) == ("3", "2")


async def test_header_that_a_filter_asks_for_is_never_seen_below() -> None:
    turns: list[TurnRequest] = []
    requests: list[HttpRequest] = []

    def look(turn: TurnRequest, below: Below) -> AsyncIterator[Event]:
        turns.append(turn)
        return below(turn)

    async def below(request: HttpRequest) -> HttpResponse:
        requests.append(request)
        return await answer(stream=True)(request)

    await run_http([telling("attache-a", "1"), turn_filter(look)], asked(stream=True), below)
    assert [turn.response_headers for turn in turns] == [{}]
    assert not [name for request in requests for name in request.headers if name.startswith("attache-")]


async def test_headers_of_an_exchange_are_not_those_of_the_next() -> None:
    filters = [telling("attache-a", "1")]
    await run_http(filters, asked(stream=False), answer(stream=False))
    response, _ = await run_http([turn_filter(pass_turn)], asked(stream=False), answer(stream=False))
    assert "attache-a" not in response.headers


async def test_stream_that_begins_before_a_header_is_asked_for_goes_without_it() -> None:
    async def late(turn: TurnRequest, below: Below) -> AsyncIterator[Event]:
        yield EVENTS[0]
        async for event in below(turn.with_response_header("attache-a", "1")):
            if event.type != "response.created":
                yield event

    response, body = await run_http(turn_filter(late), asked(stream=True), answer(stream=True))
    assert (response.status, body) == (200, SSE)
    assert "attache-a" not in response.headers


async def test_error_of_a_filter_that_never_called_below_has_no_header_of_others() -> None:
    filters = [turn_filter(emitting(then=UpstreamError("Gone."))), telling("attache-a", "1")]
    response, _ = await run_http(filters, asked(stream=False), answer(stream=False))
    assert (response.status, "attache-a" in response.headers) == (502, False)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("attache-a", "a\r\nset-cookie: b"),
        ("attache-a", "é"),
        ("attache-a", "\x00"),
        ("attache-", "x"),
        ("attache-A", "x"),
        ("attache-a:", "x"),
        ("attache-a\n", "x"),
        ("x-attache-tenant", "x"),
        ("content-type", "x"),
        ("", "x"),
    ],
)
def test_response_header_that_is_none_of_a_filters_is_refused(name: str, value: str) -> None:
    with pytest.raises(ValueError, match=r"attache-|ASCII"):
        TurnRequest({}).with_response_header(name, value)
