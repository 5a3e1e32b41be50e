"""Sizes that are bounded, and that it makes no difference to a client how the filters are placed."""

from __future__ import annotations

import gzip
import sqlite3
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
import zstandard

from attache_core.testing.model_script import call, function_calls, text
from core.events.canonical_stream import check_stream
from e2e.stage import Stage, open_stage

MAX_REQUEST_BYTES = 6000
MAX_REPLY_BYTES = 60_000
LIMITS = f"limits: {{max_request_bytes: {MAX_REQUEST_BYTES}, max_reply_bytes: {MAX_REPLY_BYTES}}}\n"
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


@pytest.mark.parametrize("coding", [None, "gzip", "zstd"])
async def test_request_over_the_limit_is_refused(limited: Stage, stream: bool, coding: str | None) -> None:
    answer = await limited.post(*coded(MAX_REQUEST_BYTES + 1, stream, coding))

    assert (answer.status, answer.body["error"]["code"]) == (413, "request_too_large")
    assert limited.model.asked == []


@pytest.mark.parametrize("coding", [None, "gzip", "zstd"])
async def test_request_at_the_limit_is_answered(limited: Stage, stream: bool, coding: str | None) -> None:
    limited.model.play(text("Yes."))

    answer = await limited.post(*coded(MAX_REQUEST_BYTES, stream, coding))

    assert (answer.status, answer.text) == (200, "Yes.")


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


def coded(size: int, stream: bool, coding: str | None) -> tuple[bytes, dict[str, str]]:
    """A request of `size` bytes, and its headers."""
    start = b'{"model":"m","stream":%b,"input":"' % (b"true" if stream else b"false")
    body = start + b"x" * (size - len(start) - 2) + b'"}'
    match coding:
        case "gzip":
            body = gzip.compress(body)
        case "zstd":
            body = zstandard.compress(body)
    return body, {} if coding is None else {"content-encoding": coding}
