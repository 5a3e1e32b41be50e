from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from attache_core.errors import AttacheError, ClientError, UpstreamError
from attache_core.events.event import Event
from attache_core.json_codec import encode
from attache_core.turn.model_request import model_request
from attache_core.turn.round import RoundLimits, Send, run_round
from attache_core.types.turn import TurnRequest
from core.events.canonical_stream import check_stream

MESSAGE = {
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Hi"}],
}
ANSWER = {"id": "resp_theirs", "object": "response", "status": "completed", "model": "theirs", "output": [MESSAGE]}


@dataclass
class Answer:
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "application/json"})
    chunks: tuple[bytes, ...] = ()

    @property
    def body(self) -> AsyncIterator[bytes]:
        async def chunks() -> AsyncIterator[bytes]:
            for chunk in self.chunks:
                yield chunk

        return chunks()


def sending(answer: Answer) -> Send:
    async def send(turn: TurnRequest) -> Answer:
        return answer

    return send


def streaming(*payloads: Any) -> Answer:
    frames = tuple(b"data: " + encode(payload) + b"\n\n" for payload in payloads)
    return Answer(headers={"content-type": "text/event-stream; charset=utf-8"}, chunks=frames)


def turn(**body: Any) -> TurnRequest:
    return TurnRequest({"model": "m", "input": "Hi", **body})


async def events_of(turn: TurnRequest, answer: Answer, **options: Any) -> list[Event]:
    return [event async for event in run_round(turn, sending(answer), **options)]


def test_model_is_asked_for_nothing_that_the_gateway_keeps() -> None:
    given = turn(
        store=True,
        previous_response_id="resp_1",
        seed=3,
        input=[{"type": "mcp_list_tools", "server_label": "s", "tools": []}, {"role": "user", "content": "Hi"}],
    ).with_facts(history_items=1)

    assert model_request(given).body == {
        "model": "m",
        "input": [{"role": "user", "content": "Hi"}],
        "seed": 3,
        "store": False,
    }


def test_previous_response_that_nobody_loaded_is_refused() -> None:
    with pytest.raises(ClientError) as refused:
        model_request(turn(previous_response_id="resp_1"))
    assert (refused.value.http_status, refused.value.param) == (400, "previous_response_id")


async def test_plain_answer_is_one_terminal_event_under_our_id() -> None:
    (event,) = await events_of(turn().with_facts(response_id="resp_ours"), Answer(chunks=(encode(ANSWER),)))

    response = event.data["response"]
    assert (event.type, response["id"], response["model"]) == ("response.completed", "resp_ours", "theirs")
    assert [part["text"] for part in response["output"][0]["content"]] == ["Hi"]


async def test_answer_in_one_piece_to_a_streaming_client_is_a_whole_stream() -> None:
    events = await events_of(turn(stream=True), Answer(chunks=(encode(ANSWER),)))

    check_stream(events)


async def test_stream_that_breaks_off_ends_as_failed() -> None:
    answer = streaming({"type": "response.created", "response": {**ANSWER, "output": [], "status": "in_progress"}})

    events = await events_of(turn(stream=True), answer)

    check_stream(events)
    assert events[-1].type == "response.failed"


@pytest.mark.parametrize(
    ("answer", "stream"),
    [
        (Answer(chunks=(b"not json",)), False),
        (Answer(chunks=(b"[]",)), False),
        (Answer(chunks=()), False),
        (Answer(headers={"content-type": "text/html"}, chunks=(b"<html>",)), True),
        (streaming(), True),
        (streaming([1]), True),
        (streaming({"object": "chat.completion.chunk", "choices": []}), True),
        (
            Answer(
                chunks=(encode({**ANSWER, "status": "failed", "error": {"code": "server_error", "message": "no"}}),)
            ),
            False,
        ),
    ],
)
async def test_what_is_no_answer_is_502_before_the_first_event(answer: Answer, stream: bool) -> None:
    with pytest.raises(UpstreamError) as failed:
        await events_of(turn(stream=stream), answer)
    assert failed.value.http_status == 502


@pytest.mark.parametrize("stream", [False, True])
async def test_http_error_of_the_server_keeps_its_status_and_retry_after(stream: bool) -> None:
    refusal = {"error": {"message": "Slow down.", "type": "requests", "code": "rate_limit_exceeded", "param": None}}
    answer = Answer(429, {"content-type": "application/json", "retry-after": "3"}, (encode(refusal),))

    with pytest.raises(AttacheError) as failed:
        await events_of(turn(stream=stream), answer)

    error = failed.value
    assert (error.http_status, error.code, error.headers.get("retry-after")) == (429, "rate_limit_exceeded", "3")


async def test_answer_over_the_limit_is_502() -> None:
    with pytest.raises(UpstreamError, match="larger than 64 bytes"):
        await events_of(turn(), Answer(chunks=(encode(ANSWER),)), limits=RoundLimits(max_response_bytes=64))


async def test_answer_that_does_not_begin_in_time_is_504() -> None:
    async def never(turn: TurnRequest) -> Answer:
        await asyncio.Event().wait()
        raise AssertionError

    with pytest.raises(UpstreamError) as failed:
        async for _ in run_round(turn(), never, limits=RoundLimits(headers_timeout_s=0.01)):
            pass
    assert (failed.value.http_status, failed.value.code) == (504, "upstream_timeout")
