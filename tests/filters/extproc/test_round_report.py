"""What a failure of an inference server leaves in the log."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs

from attache_core.errors import AttacheError, ClientError, UpstreamError
from attache_core.events.event import Event, terminal_event
from attache_core.json_codec import Json
from attache_core.types.turn import TurnRequest
from attache_filters.extproc.chain import Chain
from attache_filters.extproc.guard import guarded
from attache_filters.extproc.round_report import MAX_LOGGED_CHARS
from attache_filters.extproc.scope import Scope
from attache_filters.extproc.stream_end import StreamEndedError
from attache_filters.sdk.filter import FilterConfig, InferenceFilter
from attache_filters.sdk.http import HttpBelow, HttpRequest, HttpResponse

SECRET = "what the user said"


class Asks(InferenceFilter[FilterConfig]):
    """Asks once, and ends as it is told to."""

    def __init__(self, end: Event | Exception, *, asks: bool = True) -> None:
        self._end = end
        self._asks = asks

    async def __call__(self, turn: TurnRequest, below: HttpBelow) -> AsyncIterator[Event]:
        if self._asks:
            await below(HttpRequest("POST", "/v1/responses"))
        if isinstance(self._end, Exception):
            raise self._end
        yield self._end


async def logged(asks: Asks, answer: HttpResponse) -> list[Json]:
    """The lines that one round leaves."""

    async def bottom(_: HttpRequest) -> HttpResponse:
        return answer

    with capture_logs() as lines:
        async with Scope() as scope:
            chain = Chain(bottom=bottom, scope=scope)
            below = chain.turns([asks], method="POST", path="/v1/responses")
            events = guarded("above", lambda _: below(TurnRequest({"model": "m", "input": SECRET})))
            try:
                async for _ in events:
                    pass
            except AttacheError:
                pass
    return [dict(line) for line in lines]


def answered(status: int, **headers: str) -> HttpResponse:
    return HttpResponse.of_json(status, {}, {name.replace("_", "-"): value for name, value in headers.items()})


def line(status: int | None, code: str | None, request_id: str | None = None) -> Json:
    return {
        "event": "the inference server failed",
        "log_level": "warning",
        "filter": "Asks",
        "upstream_status": status,
        "code": code,
        "upstream_request_id": request_id,
    }


def ended(status: str, error: Json | None = None) -> Event:
    return terminal_event({"object": "response", "status": status, "error": error, "output": []})


FAILED = ended("failed", {"code": "server_error", "message": SECRET})


@pytest.mark.parametrize(
    ("end", "answer", "expected"),
    [
        (ClientError(SECRET, http_status=429, code="rate_limit_exceeded"), 429, line(429, "rate_limit_exceeded")),
        (UpstreamError(SECRET), 500, line(500, None)),
        (FAILED, 200, line(200, "server_error")),
        (UpstreamError(SECRET, code="bad_upstream_response"), 200, line(200, "bad_upstream_response")),
    ],
    ids=["refused", "failed", "failed in its stream", "garbage"],
)
async def test_failure_of_the_server_is_one_line_without_its_words(
    end: Event | Exception, answer: int, expected: Json
) -> None:
    assert await logged(Asks(end), answered(answer)) == [expected]


async def test_failure_that_is_told_twice_is_one_line() -> None:
    class Both(Asks):
        async def __call__(self, turn: TurnRequest, below: HttpBelow) -> AsyncIterator[Event]:
            async for event in super().__call__(turn, below):
                yield event
            raise UpstreamError(SECRET, code="upstream_broke_off")

    Both.__qualname__ = "Asks"
    assert await logged(Both(FAILED), answered(200)) == [line(200, "server_error")]


async def test_server_that_never_answered_has_no_status() -> None:
    silent = Asks(UpstreamError(SECRET, http_status=504, code="upstream_timeout"), asks=False)

    assert await logged(silent, answered(200)) == [line(None, "upstream_timeout")]


async def test_request_id_of_the_server_is_in_the_line_and_bounded() -> None:
    found = await logged(Asks(UpstreamError(SECRET)), answered(500, x_upstream_request_id="r" * 1000))

    assert found == [line(500, None, "r" * MAX_LOGGED_CHARS)]


@pytest.mark.parametrize(
    "asks",
    [
        Asks(ended("completed")),
        Asks(ended("incomplete")),
        Asks(ClientError(SECRET, code="unsupported_value"), asks=False),
        Asks(StreamEndedError("the response was sent")),
    ],
    ids=["completed", "incomplete", "refused before it was asked", "the client left"],
)
async def test_what_is_no_failure_of_the_server_leaves_no_line(asks: Asks) -> None:
    assert await logged(asks, answered(200)) == []


async def test_bug_of_the_filter_is_one_line_of_another_kind() -> None:
    (found,) = await logged(Asks(ValueError("a bug")), answered(200))

    assert (found["event"], found["log_level"]) == ("a filter failed", "error")
