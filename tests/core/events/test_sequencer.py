from __future__ import annotations

import pytest

from attache_core.errors import ClientError, UpstreamError
from attache_core.events.event import Event
from attache_core.events.model_events import (
    AnnotationAdded,
    Delta,
    Finished,
    ItemAdded,
    ItemDone,
    ItemEvent,
    ModelEvent,
    PartAdded,
    PartDone,
    Started,
)
from attache_core.events.sequencer import Sequencer
from attache_core.json_codec import Json
from core.events.canonical_stream import check_stream
from core.events.pipeline import COMPLETED_AT, counted_ids, in_progress_response

TEXT: Json = {"type": "output_text", "annotations": [], "logprobs": [], "text": "hi"}
MESSAGE: Json = {"type": "message", "status": "completed", "content": [TEXT], "role": "assistant"}
CALL: Json = {"type": "function_call", "status": "completed", "arguments": "{}", "call_id": "c", "name": "look"}
REASONING: Json = {
    "type": "reasoning",
    "summary": [{"type": "summary_text", "text": "s"}],
    "content": [{"type": "reasoning_text", "text": "hm"}],
}


def new_sequencer() -> Sequencer:
    return Sequencer(in_progress_response(), make_id=counted_ids())


def emitted(sequencer: Sequencer, *events: ModelEvent) -> list[Event]:
    return [made for event in events for made in sequencer.emit(event)]


def message_begun(key: str = "m") -> list[ModelEvent]:
    begun = {**MESSAGE, "status": "in_progress", "content": []}
    return [ItemAdded(key, begun), PartAdded(key, 0, "output_text"), Delta(key, 0, "text", "hi")]


def test_text_has_the_events_that_the_api_gives_it() -> None:
    sequencer = new_sequencer()
    events = emitted(sequencer, *message_begun(), PartDone("m", 0, TEXT), ItemDone("m", MESSAGE))
    events += sequencer.finish(Finished("completed", usage={"total_tokens": 3}), completed_at=COMPLETED_AT)
    item, place = {"id": "message_0", **MESSAGE}, {"item_id": "message_0", "output_index": 0, "content_index": 0}
    begun = in_progress_response()
    final = {
        **begun, "status": "completed", "completed_at": COMPLETED_AT, "output": [item], "usage": {"total_tokens": 3},
    }  # fmt: skip
    expected: list[Json] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
        {
            "type": "response.output_item.added",
            "item": {**item, "status": "in_progress", "content": []},
            "output_index": 0,
        },
        {"type": "response.content_part.added", **place, "part": {**TEXT, "text": ""}},
        {"type": "response.output_text.delta", **place, "delta": "hi", "logprobs": []},
        {"type": "response.output_text.done", **place, "text": "hi", "logprobs": []},
        {"type": "response.content_part.done", **place, "part": TEXT},
        {"type": "response.output_item.done", "item": item, "output_index": 0},
        {"type": "response.completed", "response": final},
    ]
    assert [event.data for event in events] == [
        {**data, "sequence_number": number} for number, data in enumerate(expected)
    ]
    assert sequencer.response == final


@pytest.mark.parametrize("item", [MESSAGE, CALL, REASONING, {**CALL, "type": "custom_tool_call", "input": "x"}])
def test_item_that_comes_whole_is_a_valid_stream(item: Json) -> None:
    sequencer = new_sequencer()
    events = [*emitted(sequencer, ItemDone("k", item)), *sequencer.finish(Finished("completed"), completed_at=1)]
    check_stream(events)
    assert events[-1].data["response"]["output"] == [{"id": f"{item['type']}_0", **item}]


def test_start_happens_once_and_is_owed_to_whatever_comes_first() -> None:
    sequencer = new_sequencer()
    started = [sequencer.started]
    assert [event.type for event in sequencer.start()] == ["response.created", "response.in_progress"]
    assert [*started, sequencer.started] == [False, True]
    assert sequencer.start() == []
    assert [event.type for event in new_sequencer().finish(Finished("failed"), completed_at=1)] == [
        "response.created", "response.in_progress", "response.failed",
    ]  # fmt: skip


def test_model_is_the_servers_unless_another_was_shown() -> None:
    first, second = new_sequencer(), new_sequencer()
    second.start()
    for sequencer in (first, second):
        sequencer.emit(Started({"model": "real-2026-01-01", "id": "resp_other"}))
    assert (first.response["model"], second.response["model"]) == ("real-2026-01-01", "asked-for")
    assert first.response["id"] == "resp_1"
    third = new_sequencer()
    third.emit(Started({"model": None}))
    assert third.response["model"] == "asked-for"


def test_rounds_are_one_response() -> None:
    sequencer = new_sequencer()
    events = emitted(sequencer, Started({}), ItemDone("1/a", CALL), Finished("completed"))
    events += emitted(sequencer, Started({}), ItemDone("2/a", MESSAGE), Finished("completed"))
    events += sequencer.finish(Finished("completed"), completed_at=1)
    check_stream(events)
    assert [item["type"] for item in events[-1].data["response"]["output"]] == ["function_call", "message"]


def test_item_keeps_the_id_that_it_brings() -> None:
    sequencer = new_sequencer()
    events = emitted(sequencer, ItemDone("k", {**CALL, "id": "fc_mine"}))
    assert {event.data.get("item_id", event.data.get("item", {}).get("id")) for event in events[2:]} == {"fc_mine"}


@pytest.mark.parametrize("given", [None, "", 7, "taken"])
def test_id_that_is_none_or_taken_is_replaced(given: object) -> None:
    sequencer = new_sequencer()
    emitted(sequencer, ItemDone("j", {**CALL, "id": "taken"}), ItemDone("k", {**CALL, "id": given}))
    assert sequencer.response["output"] == [{**CALL, "id": "taken"}, {**CALL, "id": "function_call_0"}]


def test_output_is_in_the_order_of_the_indexes() -> None:
    sequencer = new_sequencer()
    begun = {**CALL, "arguments": "", "status": "in_progress"}
    calls: list[ModelEvent] = [ItemAdded(key, begun) for key in "ab"]
    calls += [Delta(key, None, "arguments", "{}") for key in "ab"]
    events = emitted(sequencer, *calls, ItemDone("b", CALL), ItemDone("a", CALL))
    check_stream([*events, *sequencer.finish(Finished("completed"), completed_at=1)])
    assert [item["id"] for item in sequencer.response["output"]] == ["function_call_0", "function_call_1"]


def test_events_of_what_is_not_open_are_not_shown() -> None:
    sequencer = new_sequencer()
    sequencer.start()
    emitted(sequencer, ItemDone("done", MESSAGE), ItemAdded("open", {**MESSAGE, "content": []}))
    ignored: list[ModelEvent] = [
        Delta("unknown", 0, "text", "x"), Delta("done", 0, "text", "x"), Delta("open", 0, "text", "x"),
        PartAdded("unknown", 0, "output_text"), PartAdded("open", 1, "output_text"), PartDone("open", 0, TEXT),
        AnnotationAdded("open", 0, {}), ItemEvent("done", "response.mcp_call.failed"), ItemDone("done", MESSAGE),
        ItemAdded("done", MESSAGE), ItemAdded("open", MESSAGE), Finished("completed"),
    ]  # fmt: skip
    assert emitted(sequencer, *ignored) == []


def test_events_of_an_items_life_have_its_place() -> None:
    sequencer = new_sequencer()
    item = {"type": "mcp_call", "status": "in_progress"}
    events = emitted(
        sequencer, ItemAdded("k", item), ItemEvent("k", "response.mcp_call_arguments.delta", {"delta": "{}"})
    )
    assert events[-1] == Event(
        "response.mcp_call_arguments.delta",
        {
            "type": "response.mcp_call_arguments.delta",
            "delta": "{}",
            "item_id": "mcp_call_0",
            "output_index": 0,
            "sequence_number": 3,
        },
    )


def test_annotations_are_numbered() -> None:
    sequencer = new_sequencer()
    emitted(sequencer, *message_begun())
    events = emitted(sequencer, AnnotationAdded("m", 0, {"type": "a"}), AnnotationAdded("m", 0, {"type": "b"}))
    assert [event.data["annotation_index"] for event in events] == [0, 1]


def test_failure_closes_what_is_open_as_incomplete() -> None:
    sequencer = new_sequencer()
    events = emitted(
        sequencer,
        ItemAdded("f", {**CALL, "status": "in_progress", "arguments": ""}),
        Delta("f", None, "arguments", '{"a'),
        *message_begun(),
    )
    events += sequencer.fail(UpstreamError("It broke.", code="upstream_gone"))
    check_stream(events)
    response = events[-1].data["response"]
    assert [item["status"] for item in response["output"]] == ["incomplete", "incomplete"]
    assert response["output"][0]["arguments"] == '{"a'
    assert response["output"][1]["content"] == [TEXT]
    assert response["error"] == {"code": "upstream_gone", "message": "It broke."}
    assert (response["status"], response["completed_at"], response["usage"]) == ("failed", None, None)


def test_code_of_a_failed_response_is_never_null() -> None:
    (*_, event) = new_sequencer().fail(ClientError("No."))
    assert event.data["response"]["error"] == {"code": "server_error", "message": "No."}
    (*_, event) = new_sequencer().finish(Finished("failed"), completed_at=1)
    assert event.data["response"]["error"] == {"code": "server_error", "message": "The response failed."}


def test_incomplete_response_says_why() -> None:
    details = {"reason": "max_output_tokens"}
    (*_, event) = new_sequencer().finish(Finished("incomplete", incomplete_details=details), completed_at=1)
    assert event.type == "response.incomplete"
    assert event.data["response"] == {**in_progress_response(), "status": "incomplete", "incomplete_details": details}


def test_sign_of_life_is_the_response_as_it_began_and_does_not_repeat_what_was_said() -> None:
    sequencer = new_sequencer()
    events = [*sequencer.progress(), *sequencer.progress(), *emitted(sequencer, ItemDone("k", CALL), *message_begun())]
    events += [*sequencer.progress(), *sequencer.finish(Finished("completed"), completed_at=1)]
    check_stream(events)
    signs = [event.data["response"] for event in events if event.type == "response.in_progress"]
    begun = in_progress_response()
    assert signs == [begun, begun, begun]
    assert events[0].type == "response.created"
    assert sequencer.progress() == []


def test_nothing_follows_the_terminal_event() -> None:
    sequencer = new_sequencer()
    sequencer.finish(Finished("completed"), completed_at=1)
    assert emitted(sequencer, Started({}), *message_begun(), ItemDone("k", MESSAGE)) == []
    assert sequencer.finish(Finished("completed"), completed_at=1) == []
    assert sequencer.fail(ClientError("No.")) == []
    assert sequencer.start() == []


def test_events_given_out_do_not_change_afterwards() -> None:
    sequencer = new_sequencer()
    created, _ = sequencer.start()
    emitted(sequencer, ItemDone("k", MESSAGE))
    sequencer.finish(Finished("completed"), completed_at=1)
    assert created.data == {"type": "response.created", "response": in_progress_response(), "sequence_number": 0}


def test_response_that_is_kept_is_the_one_that_is_told() -> None:
    told, kept = new_sequencer(), new_sequencer()
    said: list[ModelEvent] = [
        Started({"model": "theirs"}),
        *message_begun(),
        ItemAdded("c", {**CALL, "id": "fc_theirs", "status": "in_progress", "arguments": ""}),
        ItemDone("c", CALL),
        PartDone("m", 0, TEXT),
        ItemDone("m", MESSAGE),
        ItemDone("r", REASONING),
        ItemDone("m", CALL),
    ]
    finished = Finished("incomplete", usage={"total_tokens": 3}, incomplete_details={"reason": "max_output_tokens"})
    emitted(told, *said)
    for event in said:
        kept.keep(event)
    assert kept.response == told.response
    (end,) = kept.finish(finished, completed_at=COMPLETED_AT)
    assert end.data["response"] == told.finish(finished, completed_at=COMPLETED_AT)[-1].data["response"]
    kept.keep(ItemDone("late", MESSAGE))
    assert kept.response == told.response
