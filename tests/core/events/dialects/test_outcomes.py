"""Only what a server explicitly calls complete is a success; everything else is named for what it is."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from attache_core.errors import UpstreamError
from attache_core.events.accumulator import CUT_OFF
from attache_core.events.dialects import DialectName, dialect_for
from attache_core.events.model_events import Finished
from attache_core.json_codec import Json
from core.events.canonical_stream import check_stream
from core.events.dialects.payloads import CREATED, built, call_stream, completed, message
from core.events.pipeline import client_events, read_payloads

UPSTREAMS = pytest.mark.parametrize("name", get_args(DialectName))
DELTA: Json = {"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "delta": "hi"}
ERROR: Json = {"code": "overloaded", "message": "no"}
BARE: Json = {"object": "error", "type": "InternalServerError", **ERROR}
FAILED: Json = {"type": "response.failed", "response": {"status": "failed", "error": ERROR}}


def terminal(kind: str, status: object, **fields: Any) -> Json:
    return {"type": f"response.{kind}", "response": {"status": status, "output": [], **fields}}


@UPSTREAMS
@pytest.mark.parametrize("payloads", [[], [CREATED], [CREATED, DELTA]], ids=["nothing", "created", "delta"])
def test_stream_without_a_terminal_event_failed(name: DialectName, payloads: list[Json]) -> None:
    events = client_events([CREATED, *payloads], dialect_for(name))
    check_stream(events)
    assert (events[-1].type, events[-1].data["response"]["error"]) == ("response.failed", CUT_OFF)


@UPSTREAMS
@pytest.mark.parametrize(
    "payload",
    [FAILED, {"type": "error", "error": ERROR}, {"type": "error", **ERROR}, {"error": ERROR}, BARE],
    ids=["failed", "error", "flat error", "bare error", "bare flat error"],
)
@pytest.mark.parametrize(
    "before", [[], [DELTA], call_stream("{", done="{}")[:2]], ids=["first", "in text", "in a call"]
)
def test_failure_ends_what_is_open_as_incomplete_and_then_the_response(
    name: DialectName, payload: Json, before: list[Json]
) -> None:
    events = client_events([CREATED, *before, payload], dialect_for(name))
    check_stream(events)
    response = events[-1].data["response"]
    assert (events[-1].type, response["error"]) == ("response.failed", ERROR)
    assert {item["status"] for item in response["output"]} <= {"incomplete"}


@UPSTREAMS
@pytest.mark.parametrize(
    ("kind", "status", "outcome"),
    [
        ("completed", "completed", "completed"),
        ("completed", None, "completed"),
        ("completed", "incomplete", "incomplete"),
        ("completed", "failed", "failed"),
        ("completed", "cancelled", "failed"),
        ("completed", "in_progress", "failed"),
        ("completed", "queued", "failed"),
        ("completed", "done", "failed"),
        ("completed", 7, "failed"),
        ("incomplete", "incomplete", "incomplete"),
        ("incomplete", None, "incomplete"),
        ("incomplete", "completed", "incomplete"),
        ("incomplete", "failed", "failed"),
        ("failed", "completed", "failed"),
        ("failed", None, "failed"),
        ("cancelled", "cancelled", "failed"),
    ],
)
def test_worse_of_the_events_type_and_its_responses_status_counts(
    name: DialectName, kind: str, status: object, outcome: str
) -> None:
    (finished,) = read_payloads([terminal(kind, status)], dialect_for(name))
    assert isinstance(finished, Finished)
    assert (finished.status, finished.error is None) == (outcome, outcome != "failed")


@UPSTREAMS
def test_incomplete_keeps_its_details_and_no_other_outcome_has_any(name: DialectName) -> None:
    details = {"reason": "content_filter"}
    outcomes = [
        read_payloads([terminal(kind, None, incomplete_details=details)], dialect_for(name))[-1]
        for kind in ("completed", "incomplete", "failed")
    ]
    assert [getattr(finished, "incomplete_details", 0) for finished in outcomes] == [None, details, None]


@UPSTREAMS
@pytest.mark.parametrize(
    "second", [completed(message("no")), FAILED, DELTA, {"type": "error", "error": ERROR}, {"x": 1}]
)
@pytest.mark.parametrize("first", [completed(), FAILED], ids=["completed", "failed"])
def test_nothing_after_the_terminal_event_counts(name: DialectName, first: Json, second: Json) -> None:
    payloads = [CREATED, DELTA, first]
    try:
        again = client_events([*payloads, second], dialect_for(name))
    except UpstreamError:
        return  # what is no event at all; a round stops reading before it
    assert again == client_events(payloads, dialect_for(name))


@UPSTREAMS
@pytest.mark.parametrize("status", ["in_progress", "queued", "cancelled", "expired", "", None, 1])
def test_plain_answer_whose_status_is_no_end_is_no_answer(name: DialectName, status: object) -> None:
    with pytest.raises(UpstreamError) as raised:
        list(dialect_for(name).read_response({"object": "response", "status": status, "output": [message("hi")]}))
    assert (raised.value.http_status, raised.value.code) == (502, "bad_upstream_response")


@UPSTREAMS
def test_plain_answer_that_failed_keeps_its_error(name: DialectName) -> None:
    body = {"status": "failed", "output": [], "error": ERROR}
    assert list(dialect_for(name).read_response(body))[-1] == Finished("failed", error=ERROR)


@UPSTREAMS
@pytest.mark.parametrize("body", [{"error": ERROR}, {"object": "error", **ERROR}, {"error": "no"}], ids=str)
def test_plain_error_object_with_status_200_is_a_failure(name: DialectName, body: Json) -> None:
    (finished,) = dialect_for(name).read_response(body)
    assert isinstance(finished, Finished)
    assert (finished.status, (finished.error or {})["message"]) == ("failed", "no")


def test_completed_response_without_items_is_a_success() -> None:
    assert built([CREATED, completed()]) == []
