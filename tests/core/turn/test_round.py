from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import pytest

from attache_core.errors import AttacheError, ClientError, UpstreamError
from attache_core.events.delta_run import one_by_one
from attache_core.events.event import Event
from attache_core.events.event_stream import MAX_BATCH_BYTES, batches
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
FAILED = {**ANSWER, "status": "failed", "error": {"code": "server_error", "message": "no"}}


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
        (Answer(chunks=(encode(FAILED),)), False),
        (Answer(chunks=(encode(FAILED),)), True),
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


COMPLETED = {"type": "response.completed", "response": ANSWER}
CREATED = {"type": "response.created", "response": {**ANSWER, "output": [], "status": "in_progress"}}
FRAME = b"event: response.completed\ndata: " + encode(COMPLETED) + b"\n\n"


@pytest.mark.parametrize("content_type", ["text/event-stream", "Text/Event-Stream ; charset=utf-8", "", None])
async def test_stream_with_any_spelling_of_its_content_type_or_none_is_a_stream(content_type: str | None) -> None:
    headers = {} if content_type is None else {"content-type": content_type}
    events = await events_of(turn(stream=True), Answer(headers=headers, chunks=(FRAME,)))
    check_stream(events)


@pytest.mark.parametrize("content_type", ["application/json; charset=utf-8", "APPLICATION/JSON", "", None])
async def test_plain_answer_with_any_spelling_of_its_content_type_or_none_is_an_answer(
    content_type: str | None,
) -> None:
    headers = {} if content_type is None else {"content-type": content_type}
    (event,) = await events_of(turn(), Answer(headers=headers, chunks=(encode(ANSWER),)))
    assert event.type == "response.completed"


async def test_stream_for_a_client_that_did_not_ask_for_one_is_its_terminal_event() -> None:
    (event,) = await events_of(turn(), streaming(CREATED, COMPLETED))
    assert event.type == "response.completed"


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/json", FRAME),
        ("text/html", b"<html>secret</html>"),
        ("text/plain", b"secret"),
        ("text/event-stream", b"<html>secret</html>"),
        ("text/event-stream", encode(ANSWER)),
        ("application/json", encode(ANSWER)[:-1]),
        ("text/event-stream", FRAME[:-9]),
        ("", b""),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
async def test_garbage_with_status_200_is_502_and_not_repeated(content_type: str, body: bytes, stream: bool) -> None:
    with pytest.raises(UpstreamError) as failed:
        await events_of(turn(stream=stream), Answer(headers={"content-type": content_type}, chunks=(body,)))
    assert (failed.value.http_status, "secret" in failed.value.message) == (502, False)


@pytest.mark.parametrize("coding", ["gzip", "GZIP", "br", "zstd", "deflate"])
@pytest.mark.parametrize("stream", [False, True])
async def test_compressed_answer_is_502_for_nobody_asked_for_one(coding: str, stream: bool) -> None:
    headers = {"content-type": "text/event-stream", "content-encoding": coding}
    with pytest.raises(UpstreamError, match="content coding") as failed:
        await events_of(turn(stream=stream), Answer(headers=headers, chunks=(FRAME,)))
    assert failed.value.http_status == 502


async def test_content_coding_identity_is_none() -> None:
    headers = {"content-type": "application/json", "content-encoding": "Identity"}
    assert len(await events_of(turn(), Answer(headers=headers, chunks=(encode(ANSWER),)))) == 1


@pytest.mark.parametrize(
    ("code", "status"), [("rate_limit_exceeded", 429), ("server_error", 502), ("context_length_exceeded", 400)]
)
@pytest.mark.parametrize("form", ["error", "failed", "bare"])
async def test_failure_as_the_first_event_of_a_200_is_a_real_status(code: str, status: int, form: str) -> None:
    error = {"code": code, "message": "no"}
    payloads = {
        "error": {"type": "error", "error": error},
        "failed": {"type": "response.failed", "response": {"status": "failed", "error": error}},
        "bare": {"error": error},
    }
    with pytest.raises(AttacheError) as failed:
        await events_of(turn(stream=True), streaming(payloads[form]))
    assert (failed.value.http_status, failed.value.code, failed.value.message) == (status, code, "no")


@pytest.mark.parametrize("after", [COMPLETED, {"type": "error", "error": {}}, {"x": 1}, [1]], ids=str)
async def test_what_follows_the_terminal_event_is_not_read(after: Any) -> None:
    assert [event.type for event in await events_of(turn(stream=True), streaming(CREATED, COMPLETED, after))] == [
        event.type for event in await events_of(turn(stream=True), streaming(CREATED, COMPLETED))
    ]


async def test_much_that_comes_at_once_is_told_in_bounded_batches() -> None:
    said = [f"word {place} " for place in range(4000)]
    deltas = [{"type": "response.output_text.delta", "item_id": "m", "delta": text} for text in said]
    stream = b"".join(streaming(*deltas, COMPLETED).chunks)
    answer = Answer(headers={"content-type": "text/event-stream"}, chunks=(stream,))

    told = [list(one_by_one(batch)) async for batch in batches(run_round(turn(stream=True), sending(answer)))]

    assert len(told) == ceil(len(stream) / MAX_BATCH_BYTES) > 1
    assert [event.data["delta"] for batch in told for event in batch if "delta" in event.data] == said
    assert max(map(len, told)) < 1.5 * len(said) / len(told)


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


async def silent_after(chunk: bytes) -> AsyncIterator[bytes]:
    yield chunk
    await asyncio.Event().wait()


@dataclass
class Silent:
    """An answer that begins and falls silent."""

    said: bytes
    content_type: str
    status: int = 200

    @property
    def headers(self) -> Mapping[str, str]:
        return {"content-type": self.content_type}

    @property
    def body(self) -> AsyncIterator[bytes]:
        return silent_after(self.said)


async def run_silent(answer: Silent, *, stream: bool) -> list[Event]:
    async def send(turn: TurnRequest) -> Silent:
        return answer

    limits = RoundLimits(idle_timeout_s=0.02)
    return [event async for event in run_round(turn(stream=stream), send, limits=limits)]


@pytest.mark.parametrize("content_type", ["application/json", "text/event-stream"])
@pytest.mark.parametrize("stream", [False, True])
async def test_answer_that_falls_silent_before_its_first_event_is_504(content_type: str, stream: bool) -> None:
    with pytest.raises(UpstreamError) as failed:
        await run_silent(Silent(b'{"id": ', content_type), stream=stream)
    assert (failed.value.http_status, failed.value.code) == (504, "upstream_timeout")


async def test_request_id_of_the_server_goes_along_with_its_error() -> None:
    headers = {"content-type": "application/json", "x-upstream-request-id": "req_theirs"}
    with pytest.raises(AttacheError) as failed:
        await events_of(turn(), Answer(400, headers, (b'{"error": {"message": "No."}}',)))
    assert failed.value.headers == {"x-upstream-request-id": "req_theirs"}


async def test_http_error_whose_body_breaks_off_keeps_its_status_and_retry_after() -> None:
    async def breaking() -> AsyncIterator[bytes]:
        yield b'{"error": '
        raise UpstreamError("The inference server broke off its answer.", code="broke_off")

    class Broken(Answer):
        @property
        def body(self) -> AsyncIterator[bytes]:
            return breaking()

    with pytest.raises(AttacheError) as failed:
        await events_of(turn(), Broken(429, {"content-type": "application/json", "retry-after": "3"}))
    assert (failed.value.http_status, failed.value.headers) == (429, {"retry-after": "3"})


@pytest.mark.parametrize("together", [False, True], ids=["each in a chunk", "in one chunk"])
@pytest.mark.parametrize(
    "no_event",
    [b"data: {garbage\n\n", b"data: " + b"long" * 512 + b"\n\n", b"data: some\n" * 512 + b"\n"],
    ids=["garbage", "long line", "many lines"],
)
async def test_what_was_said_before_the_stream_became_garbage_is_shown_however_it_was_cut(
    together: bool, no_event: bytes
) -> None:
    delta = {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "Hi"}
    chunks = (*streaming(CREATED, delta).chunks, no_event)
    answer = Answer(headers={"content-type": "text/event-stream"}, chunks=(b"".join(chunks),) if together else chunks)
    deltas: list[str] = []

    async def read() -> None:
        async for event in run_round(turn(stream=True), sending(answer), limits=RoundLimits(max_event_bytes=1024)):
            deltas.extend([event.data["delta"]] if "delta" in event.data else [])

    with pytest.raises(UpstreamError):
        await read()
    assert deltas == ["Hi"]
