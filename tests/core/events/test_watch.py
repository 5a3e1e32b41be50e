from __future__ import annotations

import pytest

from attache_core.errors import UpstreamError
from attache_core.events.event import Event
from attache_core.events.watch import StreamWatch
from attache_core.json_codec import Json
from core.events.canonical_stream import check_stream
from core.events.pipeline import client_events
from core.events.recordings import Recorded, recorded

BROKEN = UpstreamError("It broke.", code="upstream_gone")

STREAMS = [
    pytest.param(recorded(path)[0], id=path)
    for path in (
        "text/resp-single-gpt-4o-streaming.yaml",
        "custom_tools/codex-openai-https-custom-tool-gpt-5.6-streaming.yaml",
        "mcp/mcp-openai-reference-counter-sum-missing-argument-gpt-4o-streaming.yaml",
        "function_tools/tool-call-required-Qwen-Qwen3-30B-A3B-FP8-streaming.yaml",
        "web_search/builtin-tool-web_search-stream.yaml",
    )
]


@pytest.mark.parametrize("answer", STREAMS)
def test_stream_that_breaks_after_any_event_is_ended_properly(answer: Recorded) -> None:
    events = client_events(answer.payloads)
    for broken_at in range(1, len(events)):
        passed, watch = events[:broken_at], StreamWatch()
        for event in passed:
            watch.observe(event)
        assert (watch.started, watch.ended) == (True, False)
        owed = watch.fail(BROKEN)
        assert watch.ended
        check_stream([*passed, *owed])
        assert owed[-1].data["response"]["error"] == {"code": "upstream_gone", "message": "It broke."}
        assert watch.fail(BROKEN) == []


@pytest.mark.parametrize("answer", STREAMS)
def test_signs_of_life_may_come_anywhere_in_a_stream_that_breaks(answer: Recorded) -> None:
    events = client_events(answer.payloads)
    begun = events[0].data["response"]
    for broken_at in range(2, len(events), 3):
        passed: list[Event] = []
        watch = StreamWatch()
        for event in events[:broken_at]:
            sign: Json = {"type": "response.in_progress", "response": begun}
            for data in (event.data, sign)[: 1 if event.type == "response.created" else 2]:
                passed.append(Event(data["type"], {**data, "sequence_number": len(passed)}))
        for event in passed:
            watch.observe(event)
        check_stream([*passed, *watch.fail(BROKEN)])


def test_arguments_of_a_call_that_breaks_off_are_in_its_end() -> None:
    (answer,) = recorded("mcp/mcp-openai-reference-counter-sum-missing-argument-gpt-4o-streaming.yaml")
    events = client_events(answer.payloads)
    said = next(at for at, event in enumerate(events) if event.type == "response.mcp_call_arguments.done")
    watch = StreamWatch()
    for event in events[: said + 1]:
        watch.observe(event)
    call = watch.fail(BROKEN)[-1].data["response"]["output"][-1]
    assert (call["status"], call["arguments"]) == ("incomplete", events[said].data["arguments"])


def test_stream_that_has_not_begun_owes_nothing() -> None:
    watch = StreamWatch()
    assert (watch.started, watch.fail(BROKEN)) == (False, [])


@pytest.mark.parametrize("kind", ["response.completed", "response.incomplete", "response.failed"])
def test_stream_that_has_ended_owes_nothing(kind: str) -> None:
    watch = StreamWatch()
    watch.observe(Event("response.created", {"response": {}, "sequence_number": 0}))
    watch.observe(Event(kind, {"response": {}, "sequence_number": 1}))
    assert (watch.ended, watch.fail(BROKEN)) == (True, [])


def test_event_that_cannot_be_read_owes_nothing() -> None:
    (answer,) = recorded("text/resp-single-gpt-4o-streaming.yaml")
    events = client_events(answer.payloads)[:5]
    watch = StreamWatch()
    for event in [
        *events,
        Event("response.output_text.delta", {"type": "response.output_text.delta", "output_index": 0}),
    ]:
        watch.observe(event)
    check_stream([*events, *watch.fail(BROKEN)])


def test_deltas_of_an_item_that_is_done_are_not_retained() -> None:
    (answer,) = recorded("text/resp-single-gpt-4o-streaming.yaml")
    watch = StreamWatch()
    for event in client_events(answer.payloads)[:-1]:
        watch.observe(event)
    retained = [event.type for item in watch._items.values() for event in item.events]
    assert (retained, watch._texts) == (["response.output_item.added", "response.output_item.done"], {})


def test_events_of_parts_and_items_that_were_never_begun_are_not_retained() -> None:
    (answer,) = recorded("text/resp-single-gpt-4o-streaming.yaml")
    events = client_events(answer.payloads)[:5]
    watch = StreamWatch()
    for event in events:
        watch.observe(event)
    before = watch._items[0].events[:], watch._items[0].parts.copy(), list(watch._texts)
    for kind in ("output_text.delta", "output_text.done", "content_part.done", "output_text.annotation.added"):
        for place in ({"output_index": 0, "content_index": 7}, {"output_index": 7, "content_index": 0}):
            watch.observe(Event(f"response.{kind}", {**place, "delta": "x", "sequence_number": 4}))
    assert (watch._items[0].events, watch._items[0].parts, list(watch._texts), list(watch._items)) == (*before, [0])
    check_stream([*events, *watch.fail(BROKEN)])
