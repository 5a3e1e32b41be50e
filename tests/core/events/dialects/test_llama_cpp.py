"""llama.cpp's server: one oddity a test.

| what it does | test |
| --- | --- |
| no `sequence_number`, `output_index` or `content_index` | `…nothing_is_numbered…` |
| lifecycle events carry a response of three fields | `…lifecycle_events…` |
| items all end together, at the end; calls are named by their `call_id` alone | `…that_all_end_at_the_end…` (two) |
| `timings` beside the terminal response | `…timings…` |
| the final object lacks most fields of the API | `…final_object_without_most_fields…` |
| a truncated answer is `completed` all the same | `…answer_that_was_cut_short…` |
| errors have an integer code; an over-long input has a type of its own, or once had prose | `test_http_error.py` |
"""

from __future__ import annotations

from typing import get_args

import pytest

from attache_core.events.dialects import DialectName, dialect_for
from attache_core.events.model_events import Finished
from attache_core.json_codec import Json
from core.events.canonical_stream import check_stream
from core.events.dialects.payloads import CREATED, built, call, completed, message
from core.events.pipeline import client_events, in_progress_response, read_payloads
from core.events.recordings import recorded

UPSTREAMS = pytest.mark.parametrize("name", get_args(DialectName))
TEXT = "llama_cpp/text-gemma3-270m-streaming.yaml"


def llama_call(number: int) -> list[Json]:
    return [
        {"type": "response.output_item.added", "item": {**call("", call_id=f"fc_{number}"), "status": "in_progress"}},
        {"type": "response.function_call_arguments.delta", "item_id": f"fc_{number}", "delta": f'{{"n":{number}'},
        {"type": "response.function_call_arguments.delta", "item_id": f"fc_{number}", "delta": "}"},
    ]


@pytest.mark.parametrize("name", ["auto", "llama_cpp"])
def test_llama_cpp_items_that_all_end_at_the_end_are_told_apart(name: DialectName) -> None:
    calls = [call(f'{{"n":{number}}}', call_id=f"fc_{number}") for number in (0, 1)]
    reasoning: Json = {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]}
    ends = [
        {**reasoning, "id": "rs_1", "encrypted_content": "", "status": "completed"}, message("ok", id="msg_1"), *calls,
    ]  # fmt: skip
    payloads = [
        CREATED,
        {
            "type": "response.output_item.added",
            "item": {**reasoning, "id": "rs_1", "content": [], "encrypted_content": ""},
        },
        {"type": "response.reasoning_text.delta", "item_id": "rs_1", "delta": "hm"},
        {"type": "response.output_item.added", "item": {**message(""), "id": "msg_1", "content": []}},
        {"type": "response.content_part.added", "item_id": "msg_1", "part": {"type": "output_text", "text": ""}},
        {"type": "response.output_text.delta", "item_id": "msg_1", "delta": "ok"},
        *llama_call(0),
        *llama_call(1),
        *({"type": "response.output_item.done", "item": item} for item in ends),
        completed(*ends),
    ]
    check_stream(client_events(payloads, dialect_for(name)))
    assert built(payloads, name) == [reasoning, message("ok"), *calls]


@UPSTREAMS
def test_calls_that_all_end_at_the_end_are_shown_one_at_a_time(name: DialectName) -> None:
    calls = [call(f'{{"n":{number}}}', call_id=f"fc_{number}") for number in (0, 1)]
    ends = [{"type": "response.output_item.done", "item": item} for item in calls]
    events = client_events([CREATED, *llama_call(0), *llama_call(1), *ends, completed(*calls)], dialect_for(name))
    check_stream(events)
    steps = [event.type.removeprefix("response.output_item.") for event in events if "output_item" in event.type]
    assert steps == ["added", "done", "added", "done"]


@UPSTREAMS
def test_empty_arguments_in_one_delta_are_whole_when_the_next_call_begins(name: DialectName) -> None:
    payloads = [CREATED, *llama_call(0), *llama_call(1)]
    payloads[2:4] = [{**payloads[2], "delta": "{}"}]
    events = client_events([*payloads, completed()], dialect_for(name))
    check_stream(events)
    steps = [event.type.removeprefix("response.output_item.") for event in events if "output_item" in event.type]
    assert steps == ["added", "done", "added", "done"]


@UPSTREAMS
def test_nothing_is_numbered_and_the_client_sees_all_numbers(name: DialectName) -> None:
    (answer,) = recorded(TEXT)
    numbers = {"sequence_number", "output_index", "content_index"}
    assert not [payload for payload in answer.payloads if numbers & set(payload)]
    events = client_events(answer.payloads, dialect_for(name))
    check_stream(events)
    delta = next(event.data for event in events if event.type == "response.output_text.delta")
    assert numbers <= set(delta)


@UPSTREAMS
def test_lifecycle_events_of_three_fields_become_whole_ones(name: DialectName) -> None:
    (answer,) = recorded(TEXT)
    assert set(answer.payloads[0]["response"]) == {"id", "object", "status"}
    events = client_events(answer.payloads, dialect_for(name))
    assert [set(event.data["response"]) for event in events[:2]] == [set(in_progress_response())] * 2


@UPSTREAMS
def test_timings_beside_the_terminal_response_are_not_shown(name: DialectName) -> None:
    (answer,) = recorded(TEXT)
    assert "timings" in answer.payloads[-1]
    assert "timings" not in client_events(answer.payloads, dialect_for(name))[-1].data


@UPSTREAMS
def test_final_object_without_most_fields_of_the_api_is_an_answer(name: DialectName) -> None:
    (answer,) = recorded("llama_cpp/text-gemma3-270m-nonstreaming.yaml")
    body: Json = answer.body or {}
    assert not {"tools", "tool_choice", "metadata", "error", "incomplete_details"} & set(body)
    *_, finished = dialect_for(name).read_response(body)
    assert isinstance(finished, Finished)
    assert (finished.status, finished.error, finished.incomplete_details) == ("completed", None, None)
    assert (finished.usage or {})["output_tokens_details"] == {"reasoning_tokens": 0}


@UPSTREAMS
def test_answer_that_was_cut_short_is_what_the_server_calls_it(name: DialectName) -> None:
    """It says `completed` of an answer that `max_output_tokens` ended; nothing else in it would tell."""
    payloads = [CREATED, completed(message("half of a", id="m"))]
    assert read_payloads(payloads, dialect_for(name))[-1] == Finished("completed")
