from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from itertools import product
from typing import Any

import pytest
from structlog.testing import capture_logs

from attache_core.errors import AttacheError, ClientError, UpstreamError
from attache_core.events.event import Event
from attache_core.events.sse import encode_event
from attache_core.turn.below import Below
from attache_core.types.turn import TurnRequest
from attache_filters.extproc.chain import Chain
from attache_filters.extproc.scope import Scope
from attache_filters.sdk.filter import Filter, FilterConfig, InferenceFilter
from attache_filters.sdk.http import HttpBelow, HttpRequest, HttpResponse, one_chunk
from attache_filters.testing import answering, http_answering, run_http, run_turn, text_events
from filters.extproc import hosting
from filters.extproc.hosting import SERVICES, http_filter, pass_http, pass_turn, request_filter, turn_filter

EVENTS = text_events("hello")
SSE = b"".join(encode_event(event) for event in EVENTS)
TURN = TurnRequest({"model": "m", "stream": True})


def emitting(*events: Event, then: Exception | None = None) -> Filter[Any]:
    return turn_filter(hosting.emitting(*events, then=then))


async def unchanged(turn: TurnRequest) -> TurnRequest:
    return turn


async def collected(events: AsyncIterator[Event]) -> list[Event]:
    return [event async for event in events]


LAYERS: list[Callable[[], Filter[Any]]] = [
    lambda: turn_filter(pass_turn),
    lambda: http_filter(pass_http),
    lambda: request_filter(unchanged),
]


@pytest.mark.parametrize("mix", list(product(LAYERS, repeat=3)))
@pytest.mark.parametrize("stream", [True, False])
async def test_any_mix_of_filters_that_step_aside_changes_nothing(
    mix: tuple[Callable[[], Filter[Any]], ...], stream: bool
) -> None:
    filters = [layer() for layer in mix]
    events = await run_turn(filters, TURN.with_body(stream=stream), answering(EVENTS))
    direct = await run_turn((), TURN.with_body(stream=stream), answering(EVENTS))
    assert events[-1].data["response"] == direct[-1].data["response"]
    assert not stream or events == EVENTS


@pytest.mark.parametrize("above", LAYERS)
async def test_neighbours_get_the_same_turn_however_they_are_joined(above: Callable[[], Filter[Any]]) -> None:
    seen: list[TurnRequest] = []

    async def look(turn: TurnRequest, below: Below) -> AsyncIterator[Event]:
        seen.append(turn)
        async for event in below(turn):
            yield event

    turn = TURN.with_facts(response_id="resp_1", tenant="täst")
    await run_turn([above(), turn_filter(look)], turn, answering(EVENTS))
    assert [(each.body, each.facts) for each in seen] == [(turn.body, turn.facts)]


@pytest.mark.parametrize("above", LAYERS)
@pytest.mark.parametrize("failure", [ClientError("No.", http_status=409, code="c"), UpstreamError("Gone.", code="g")])
async def test_error_before_the_first_event_is_raised_as_it_is(
    above: Callable[[], Filter[Any]], failure: AttacheError
) -> None:
    with pytest.raises(AttacheError) as caught:
        await run_turn([turn_filter(pass_turn), above(), emitting(then=failure)], TURN, answering(EVENTS))
    got = caught.value
    assert (got.message, got.http_status, got.code) == (failure.message, failure.http_status, failure.code)


@pytest.mark.parametrize("above", LAYERS)
async def test_failure_after_the_first_event_closes_what_is_open(above: Callable[[], Filter[Any]]) -> None:
    source = emitting(*EVENTS[:5], then=UpstreamError("Gone.", code="gone"))
    events = await run_turn([turn_filter(pass_turn), above(), source], TURN, answering(EVENTS))
    assert events[:5] == EVENTS[:5]
    assert events[-1].type == "response.failed"
    assert events[-1].data["response"]["error"]["message"] == "Gone."
    assert [event.data["sequence_number"] for event in events] == list(range(len(events)))


@pytest.mark.parametrize("hosted", [True, False])
async def test_request_filter_changes_the_turn_and_lets_the_answer_pass(hosted: bool) -> None:
    async def rename(turn: TurnRequest) -> TurnRequest:
        return turn.with_body(model="other")

    below, renaming = answering(EVENTS), request_filter(rename)
    run = run_turn(renaming, TURN, below) if hosted else collected(renaming(TURN, below))
    assert (await run, below.turns) == (EVENTS, [TURN.with_body(model="other")])


async def test_request_filter_that_was_closed_before_it_began_asks_nothing() -> None:
    below = answering(EVENTS)
    events = request_filter(unchanged)(TURN, below)
    await events.aclose()
    assert (await collected(events), below.turns) == ([], [])


async def test_request_filter_that_refuses_a_turn_does_so_once() -> None:
    async def refuse(turn: TurnRequest) -> TurnRequest:
        raise ClientError("No.")

    events = request_filter(refuse)(TURN, answering(EVENTS))
    with pytest.raises(ClientError, match="No"):
        await anext(events)
    assert await collected(events) == []


async def test_bug_of_a_request_filter_is_logged_once_and_not_shown() -> None:
    async def fail(turn: TurnRequest) -> TurnRequest:
        raise OSError("secret")

    with capture_logs() as logs, pytest.raises(AttacheError) as caught:
        await run_turn([turn_filter(pass_turn), request_filter(fail)], TURN, answering(EVENTS))
    assert (caught.value.http_status, caught.value.code) == (500, "internal_error")
    assert "secret" not in caught.value.message
    assert [entry["event"] for entry in logs] == ["a filter failed"]


async def test_bug_of_a_filter_is_logged_once_and_not_shown() -> None:
    filters = [turn_filter(pass_turn), turn_filter(pass_turn), emitting(then=KeyError("secret"))]
    with capture_logs() as logs, pytest.raises(AttacheError) as caught:
        await run_turn(filters, TURN, answering(EVENTS))
    assert (caught.value.http_status, caught.value.code) == (500, "internal_error")
    assert "secret" not in caught.value.message
    assert [type(log["exc_info"]) for log in logs] == [KeyError]


async def test_nothing_follows_the_terminal_event() -> None:
    with capture_logs() as logs:
        events = await run_turn(emitting(*EVENTS, EVENTS[0], EVENTS[-1]), TURN, answering(EVENTS))
    assert events == EVENTS
    assert [log["event"] for log in logs] == ["event after the terminal event dropped"]


@pytest.mark.parametrize("count", range(1, 9))
async def test_stream_that_stops_anywhere_ends_in_failure(count: int) -> None:
    events = await run_turn(emitting(*EVENTS[:count]), TURN, answering(EVENTS))
    assert [event.type for event in events if event.is_terminal] == ["response.failed"]
    assert events[-1].is_terminal


async def test_stream_without_any_event_is_an_error() -> None:
    with pytest.raises(UpstreamError):
        await run_turn(emitting(), TURN, answering(EVENTS))


@pytest.mark.parametrize(
    "junk",
    [
        Event("response.created", {"type": "response.created"}),
        Event("response.x", {"type": "response.x", "output_index": [], "sequence_number": None}),
        Event("ping", {"sequence_number": "a"}),
    ],
)
async def test_events_of_any_shape_end_in_one_terminal_event(junk: Event) -> None:
    try:
        events = await run_turn(emitting(junk), TURN, answering(EVENTS))
    except AttacheError:
        return
    assert [event.type for event in events if event.is_terminal] == ["response.failed"]


async def test_streams_left_open_are_closed_in_reverse_when_the_filter_ends() -> None:
    closed: list[str] = []

    def watched(name: str) -> Filter[Any]:
        async def run(turn: TurnRequest, below: Below) -> AsyncIterator[Event]:
            try:
                async for event in below(turn):
                    yield event
            finally:
                closed.append(name)

        return turn_filter(run)

    async def peeks(turn: TurnRequest, below: Below) -> AsyncIterator[Event]:
        left_open = [below(turn), below(turn)]
        for source in left_open:
            await anext(source)
        for event in EVENTS:
            yield event

    await run_turn([turn_filter(peeks), watched("outer"), watched("inner")], TURN, answering(EVENTS))
    assert closed == ["inner", "outer", "inner", "outer"]


async def test_cancelled_chain_leaves_no_task() -> None:
    async def stuck(_: TurnRequest, __: Below) -> AsyncIterator[Event]:
        yield EVENTS[0]
        await asyncio.Event().wait()

    before = asyncio.all_tasks()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await run_turn([turn_filter(pass_turn), turn_filter(stuck)], TURN, answering(EVENTS))
    assert asyncio.all_tasks() == before


async def test_http_filter_may_change_the_path_below_it() -> None:
    paths: list[str] = []

    async def move(request: HttpRequest, below: HttpBelow) -> HttpResponse:
        return await below(HttpRequest(request.method, "/moved", request.headers, request.body))

    async def bottom(request: HttpRequest) -> HttpResponse:
        paths.append(request.path)
        return HttpResponse.of_json(200, {"status": "completed"})

    request = HttpRequest("POST", "/v1/responses", {}, b'{"model":"m"}')
    await run_http([http_filter(move), turn_filter(pass_turn)], request, bottom)
    assert paths == ["/moved"]


class Infer(InferenceFilter[FilterConfig]):
    """Sends the body and passes on whether the answer is a stream."""

    def __call__(self, turn: TurnRequest, below: HttpBelow) -> AsyncIterator[Event]:
        return self._run(turn, below)

    async def _run(self, turn: TurnRequest, below: HttpBelow) -> AsyncIterator[Event]:
        response = await below(HttpRequest("POST", "/v1/responses", {"x": "y"}, b"raw"))
        if response.status != 200:
            raise UpstreamError("Refused.", http_status=response.status)
        for event in EVENTS:
            yield event


@pytest.mark.parametrize("filters", [[Infer], [lambda *_: turn_filter(pass_turn), Infer]])
async def test_inference_filter_has_turns_above_and_http_below(filters: list[Any]) -> None:
    asked: list[HttpRequest] = []

    async def bottom(request: HttpRequest) -> HttpResponse:
        asked.append(request)
        return HttpResponse(200, {}, one_chunk(b"whatever"))

    request = HttpRequest("POST", "/v1/responses", {}, b'{"model":"m","stream":true}')
    chain = [make(FilterConfig(), SERVICES) for make in filters]
    response, body = await run_http(chain, request, bottom)
    assert (response.status, body) == (200, SSE)
    assert asked == [HttpRequest("POST", "/v1/responses", {"x": "y", "accept": "text/event-stream"}, b"raw")]


async def test_inference_filter_sees_errors_below_as_responses() -> None:
    request = HttpRequest("POST", "/v1/responses", {}, b'{"model":"m"}')
    response, _ = await run_http(Infer(FilterConfig(), SERVICES), request, http_answering(503, {}, b"no"))
    assert response.status == 503


async def test_body_that_nobody_reads_is_closed_with_the_exchange() -> None:
    closed: list[bool] = []

    async def watched(turn: TurnRequest, below: Below) -> AsyncIterator[Event]:
        try:
            async for event in below(turn):
                yield event
        finally:
            closed.append(True)

    async def ignores(request: HttpRequest, below: HttpBelow) -> HttpResponse:
        await below(request)
        return HttpResponse.of_json(200, {})

    async def bottom(_: HttpRequest) -> HttpResponse:
        return HttpResponse(200, {"content-type": "text/event-stream"}, one_chunk(SSE))

    async with Scope() as scope:
        chain = Chain(bottom=bottom, scope=scope)
        request = HttpRequest("POST", "/v1/responses", {}, b'{"model":"m","stream":true}')
        await chain.answer([http_filter(ignores), turn_filter(watched)], request)
        assert closed == []
    assert closed == [True]
