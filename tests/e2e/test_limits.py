"""Sizes that are bounded, and that it makes no difference to a client how the filters are placed."""

from __future__ import annotations

import asyncio
import gzip
import sqlite3
import zlib
from collections.abc import AsyncIterator, Callable

import brotli  # type: ignore[import-untyped]  # it ships no types
import pytest
import pytest_asyncio
import zstandard

from attache_core.events.event import Event
from attache_core.json_codec import Json, encode
from attache_core.testing.model_script import Reply, call, function_calls, held, raw, text
from core.events.canonical_stream import check_stream
from e2e.stage import Stage, decode_events, open_stage

MAX_REQUEST_BYTES = 6000
MAX_REPLY_BYTES = 60_000
LIMITS = f"limits: {{max_request_bytes: {MAX_REQUEST_BYTES}, max_reply_bytes: {MAX_REPLY_BYTES}}}\n"
ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "zstd": zstandard.compress,
    "br": brotli.compress,
}
TURNS = 4
LONG = "x" * 4000
"""One fits into a request, and two do not."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def limited_stage(placement: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    async with open_stage(placement, tmp_path_factory.mktemp(placement), gateway_yaml=LIMITS) as stage:
        yield stage


@pytest.fixture
def limited(limited_stage: Stage) -> Stage:
    """A gateway with small limits, shared by the tests of one placement."""
    limited_stage.model.play()
    return limited_stage


def statuses(stage: Stage) -> dict[str, str]:
    with sqlite3.connect(stage.storage) as database:
        return dict(database.execute("select id, status from responses"))


async def test_conversation_longer_than_the_limit_of_a_request_goes_on(limited: Stage, stream: bool) -> None:
    limited.model.play(*(text(f"Answer {number}.") for number in range(TURNS)))
    previous: dict[str, str] = {}

    for number in range(TURNS):
        answer = await limited.ask(input=LONG, stream=stream, **previous)
        assert (answer.status, answer.text) == (200, f"Answer {number}.")
        previous = {"previous_response_id": answer.body["id"]}

    assert [len(asked["input"]) for asked in limited.model.asked[1:]] == [3, 5, 7]


async def test_rounds_longer_than_the_limit_of_a_request_go_on(limited: Stage, stream: bool) -> None:
    echo = function_calls(call("echo", {"message": LONG}))
    limited.model.play(echo, echo, text("Done."))

    answer = await limited.ask(input="Echo.", tools=[limited.mcp_tool()], stream=stream)

    assert (answer.status, answer.body["status"], answer.text) == (200, "completed", "Done.")


CODINGS = [None, "gzip", "deflate", "zstd", "br", "gzip, br"]


@pytest.mark.parametrize("coding", CODINGS)
async def test_request_over_the_limit_is_refused(limited: Stage, stream: bool, coding: str | None) -> None:
    answer = await limited.post(*coded(MAX_REQUEST_BYTES + 1, stream, coding))

    assert (answer.status, answer.body["error"]["code"]) == (413, "request_too_large")
    assert limited.model.asked == []


@pytest.mark.parametrize("coding", CODINGS)
async def test_request_at_the_limit_is_answered_and_reaches_the_model_decoded(
    limited: Stage, stream: bool, coding: str | None
) -> None:
    limited.model.play(text("Yes."))

    answer = await limited.post(*coded(MAX_REQUEST_BYTES, stream, coding))

    assert (answer.status, answer.text) == (200, "Yes.")
    (asked,) = limited.model.requests
    assert set(asked.body["input"]) == {"x"}
    assert "content-encoding" not in asked.headers


@pytest.mark.parametrize(
    ("coding", "body", "expected"),
    [
        ("gzip", gzip.compress(b'{"model": "m"}')[:-4], (400, "invalid_content_encoding")),
        ("br", b'{"model": "m"}', (400, "invalid_content_encoding")),
        ("compress", b"x", (415, "unsupported_content_encoding")),
        ("zstd", zstandard.compress(bytes(64 * 2**20)), (413, "request_too_large")),
    ],
    ids=["cut off", "not encoded", "unknown", "bomb"],
)
async def test_request_that_cannot_be_decoded_is_refused(
    limited: Stage, coding: str, body: bytes, expected: tuple[int, str]
) -> None:
    answer = await limited.post(body, {"content-encoding": coding})

    assert (answer.status, answer.body["error"]["code"]) == expected
    assert answer.body["error"]["type"] == "invalid_request_error"
    assert limited.model.asked == []


async def test_streamed_answer_over_the_limit_fails_and_is_stored_as_failed(limited: Stage) -> None:
    limited.model.play(text("word " * 2000, deltas=2000))

    answer = await limited.ask(input="Go on.", stream=True)

    check_stream(answer.decoded)
    assert (answer.body["status"], answer.body["error"]["code"]) == ("failed", "response_too_large")
    assert statuses(limited)[answer.body["id"]] == "failed"


async def test_page_cannot_post_without_being_asked_for(limited: Stage) -> None:
    answer = await limited.post(
        {"model": "m", "input": "Hi"}, {"origin": "https://a.example", "content-type": "text/plain"}
    )

    assert (answer.status, answer.body["error"]["code"]) == (415, "unsupported_content_type")
    assert limited.model.asked == []


MAX_INPUT_ITEMS, MAX_EVENT_BYTES, MAX_RESPONSE_BYTES = 3, 2048, 4096
NARROW = f"""
chains:
  responses:
    - {{filter: validate, max_input_items: {MAX_INPUT_ITEMS}}}
    - filter: persist
    - filter: rehydrate
    - filter: tool_dispatch
      loop:
        - filter: upstream_round
          max_event_bytes: {MAX_EVENT_BYTES}
          max_response_bytes: {MAX_RESPONSE_BYTES}
"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def narrow_stage(placement: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    folder = tmp_path_factory.mktemp(f"narrow-{placement}")
    async with open_stage(placement, folder, gateway_yaml=NARROW) as stage:
        yield stage


@pytest.fixture
def narrow(narrow_stage: Stage) -> Stage:
    """A gateway with small limits for what an inference server says, shared by the tests of one placement."""
    narrow_stage.model.play()
    return narrow_stage


@pytest.mark.parametrize(("items", "status"), [(MAX_INPUT_ITEMS, 200), (MAX_INPUT_ITEMS + 1, 400)])
async def test_items_of_a_request_are_limited(narrow: Stage, stream: bool, items: int, status: int) -> None:
    narrow.model.play(text("Yes."))

    answer = await narrow.ask(input=[{"role": "user", "content": "Hi"}] * items, stream=stream)

    assert answer.status == status
    assert len(narrow.model.asked) == (status == 200)


ANSWER: Json = {
    "id": "resp_1",
    "object": "response",
    "status": "completed",
    "model": "m",
    "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Yes."}]}],
}


def plain(size: int) -> Reply:
    """A JSON answer of `size` bytes."""
    return raw(200, {"content-type": "application/json"}, [encode(ANSWER).ljust(size)])


async def test_json_answer_at_the_limit_is_taken_and_one_byte_more_is_502(narrow: Stage) -> None:
    narrow.model.play(plain(MAX_RESPONSE_BYTES), plain(MAX_RESPONSE_BYTES + 1))

    at, past = [await narrow.ask(input="Hi") for _ in range(2)]

    assert (at.status, at.text) == (200, "Yes.")
    assert (past.status, past.body["error"]["code"]) == (502, "upstream_limit")


def streamed(size: int, *, begins: bool) -> Reply:
    """A stream with a line of `size` bytes in it, after `response.created` or before all else."""
    created = {"type": "response.created", "response": {**ANSWER, "status": "in_progress", "output": []}}
    completed = {"type": "response.completed", "response": ANSWER}
    start = b'data: {"type": "vendor.private", "pad": "'
    line = start + b"x" * (size - len(start) - 2) + b'"}'
    lines = [line, b"data: " + encode(completed)]
    return raw(
        200,
        {"content-type": "text/event-stream"},
        [each + b"\n\n" for each in ([b"data: " + encode(created), *lines] if begins else lines)],
    )


@pytest.mark.parametrize("begins", [False, True], ids=["before the first event", "within the stream"])
async def test_line_of_a_stream_at_the_limit_is_taken(narrow: Stage, begins: bool) -> None:
    narrow.model.play(streamed(MAX_EVENT_BYTES, begins=begins))

    answer = await narrow.ask(input="Hi", stream=True)

    assert (answer.status, answer.body["status"], answer.text) == (200, "completed", "Yes.")


async def test_line_of_a_stream_over_the_limit_is_502_before_the_first_event(narrow: Stage) -> None:
    narrow.model.play(streamed(MAX_EVENT_BYTES + 1, begins=False))

    answer = await narrow.ask(input="Hi", stream=True)

    assert (answer.status, answer.body["error"]["code"]) == (502, "upstream_limit")


async def read_in_two(stage: Stage, reply: Reply, *, after_events: int) -> list[Json]:
    """The events of a stream whose model goes on only when the client has seen the first of them."""
    seen = asyncio.Event()
    stage.model.play(held(seen, reply, after_events=after_events))
    body = {"model": "m", "input": "Hi", "stream": True}
    async with stage.client.stream("POST", "/v1/responses", json=body) as response:
        chunks = response.aiter_bytes()
        begun = await anext(chunks)
        seen.set()
        return decode_events(begun + b"".join([chunk async for chunk in chunks]))


@pytest.mark.parametrize(
    ("reply", "after_events"),
    [(streamed(MAX_EVENT_BYTES + 1, begins=True), 1), (text("word " * MAX_RESPONSE_BYTES, deltas=200), 5)],
    ids=["a line", "all that is kept"],
)
async def test_stream_over_a_limit_after_its_first_event_ends_as_failed(
    narrow: Stage, reply: Reply, after_events: int
) -> None:
    events = await read_in_two(narrow, reply, after_events=after_events)

    check_stream([Event(event["type"], event) for event in events])
    failed = events[-1]["response"]
    assert (events[-1]["type"], failed["error"]["code"]) == ("response.failed", "upstream_limit")
    assert statuses(narrow)[failed["id"]] == "failed"


def coded(size: int, stream: bool, coding: str | None) -> tuple[bytes, dict[str, str]]:
    """A request of `size` bytes, and its headers."""
    start = b'{"model":"m","stream":%b,"input":"' % (b"true" if stream else b"false")
    body = start + b"x" * (size - len(start) - 2) + b'"}'
    for name in coding.split(", ") if coding else ():
        body = ENCODERS[name](body)
    return body, {} if coding is None else {"content-encoding": coding}
