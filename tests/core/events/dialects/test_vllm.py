"""vLLM's Python server, with and without Harmony: one oddity a test; the recordings show that they are real.

| what it does | test |
| --- | --- |
| item ids and `call_id` differ between the stream and the final object | `…upstream_ids_are_dropped…` |
| ids are bare hex, of the wrong kind, or null | `…ids_of_any_form…`, `…null_id_and_stray_fields…` |
| a finished call carries `item_id`, `output_index`, `sequence_number: -1` | `…null_id_and_stray_fields…` |
| a message's only part has `content_index` 1; `reasoning_part.*` | `…part_events_of_vllm_reasoning…` |
| a message has a `summary`, a null status | `…null_status_and_fields…` |
| `arguments.done` has a `name` | `…name_of_the_function…` |
| streamed arguments differ in white space from the final ones | `…streamed_arguments_count…` |
| without a parser, reasoning and tool calls are markup in the text | `…markup…` |
| messages of white space before calls | `…message_of_white_space…` |
| a forced tool leaks a schema into `text`; fields are missing or its own | `…settings_of_the_servers_response…` |
| usage has arrays per turn | `…usage_of_vllm…` |
| `response.completed` around an incomplete response | `…completed_event_around…` |
| no `[DONE]` | `…no_end_mark…` |
| errors with an integer code and a Python class, bare in a stream too | `…bare_error…`, and `test_http_error.py` |
"""

from __future__ import annotations

from typing import get_args

import pytest

from attache_core import json_codec
from attache_core.events.dialects import DialectName, dialect_for
from attache_core.events.model_events import Finished
from attache_core.json_codec import Json
from core.events.canonical_stream import check_stream
from core.events.dialects.payloads import CREATED, built, call, call_stream, completed, message
from core.events.pipeline import client_events, in_progress_response, read_payloads
from core.events.recordings import all_recorded, recorded

UPSTREAMS = pytest.mark.parametrize("name", get_args(DialectName))
AS_VLLM = pytest.mark.parametrize("name", ["auto", "vllm"])


@UPSTREAMS
def test_upstream_ids_are_dropped_and_one_id_is_used_throughout(name: DialectName) -> None:
    (answer,) = recorded("function_tools/tool-call-required-Qwen-Qwen3-30B-A3B-FP8-streaming.yaml")
    events = client_events(answer.payloads, dialect_for(name))
    check_stream(events)
    output = events[-1].data["response"]["output"]
    assert [(item["id"], item["call_id"]) for item in output] == [
        ("function_call_0", "call_bf2ee341d62b0a3f"),
        ("function_call_1", "call_8882cfe179e26739"),
    ], "the stream's call ids are the ones a client saw first; the final object has others"


@UPSTREAMS
def test_null_id_and_stray_fields_in_a_finished_call_are_of_the_announced_one(name: DialectName) -> None:
    answer = recorded("function_tools_multi_turn/responses_tool_calls_3turn_streaming.yaml")[0]
    assert built(answer.payloads, name)[1:] == [
        {
            "type": "function_call",
            "status": "completed",
            "arguments": '{\n  "job_id": "job-382"\n}',
            "call_id": "call_8febbe99b4e4e607",
            "name": "get_job_status",
        }
    ]


@UPSTREAMS
def test_part_events_of_vllm_reasoning_become_content_parts(name: DialectName) -> None:
    (answer,) = recorded("reasoning/reasoning-single-openai-gpt-oss-20b-streaming.yaml")
    events = client_events(answer.payloads, dialect_for(name))
    assert "response.reasoning_part.added" in [payload["type"] for payload in answer.payloads]
    added = [event.data for event in events if event.type == "response.content_part.added"]
    assert [(data["part"]["type"], data["output_index"], data["content_index"]) for data in added] == [
        ("reasoning_text", 0, 0),
        ("output_text", 1, 0),
    ], "the message's only part is number 0, though the server called it 1"


def test_null_status_and_fields_that_are_not_a_messages_are_not_shown() -> None:
    item = {
        **message("hi", id="m", phase=None),
        "summary": [],
        "sequence_number": -1,
        "item_id": "m",
        "output_index": 3,
    }
    done = {"type": "response.output_item.done", "item": {**item, "status": None}}
    assert built([CREATED, done, completed()]) == [message("hi")]


def test_usage_of_vllm_is_whole_and_nothing_more() -> None:
    (answer,) = recorded("reasoning/reasoning-single-Qwen-Qwen3-30B-A3B-FP8-nonstreaming.yaml")
    assert answer.body is not None
    *_, finished = dialect_for("vllm").read_response(answer.body)
    assert finished == Finished(
        "completed",
        usage={
            "input_tokens": 16,
            "input_tokens_details": {"cache_write_tokens": 0, "cached_tokens": 0},
            "output_tokens": 201,
            "output_tokens_details": {"reasoning_tokens": 195},
            "total_tokens": 217,
        },
    )


def test_completed_event_around_an_incomplete_response_is_incomplete() -> None:
    details = {"reason": "max_output_tokens"}
    response = {"status": "incomplete", "incomplete_details": details, "output": []}
    (finished,) = read_payloads([{"type": "response.completed", "response": response}])
    assert finished == Finished("incomplete", incomplete_details=details)


@AS_VLLM
@pytest.mark.parametrize("item_id", ["b2ee341d62b0a3f1", "rs_of_another_kind", "x" * 200, "ütf 8", ""])
def test_ids_of_any_form_are_not_shown(name: DialectName, item_id: str) -> None:
    payloads = [CREATED, *call_stream('{"a":1}', done='{"a":1}', item_id=item_id), completed()]
    events = client_events(payloads, dialect_for(name))
    check_stream(events)
    assert [event.data["item"]["id"] for event in events if "item" in event.data] == ["function_call_0"] * 2


@AS_VLLM
def test_name_of_the_function_at_the_end_of_its_arguments_announces_a_call_without_one(name: DialectName) -> None:
    payloads = [CREATED, *call_stream('{"a":1}', done='{"a":1}')[:-1], completed()]
    payloads[1]["item"]["name"] = ""
    events = client_events(payloads, dialect_for(name))
    check_stream(events)
    assert events[-1].data["response"]["output"] == [{"id": "function_call_0", **call('{"a":1}')}]


@AS_VLLM
def test_streamed_arguments_count_and_not_the_final_ones(name: DialectName) -> None:
    (answer,) = recorded("function_tools/tool-call-required-Qwen-Qwen3-30B-A3B-FP8-streaming.yaml")
    streamed = [payload["arguments"] for payload in answer.payloads if payload["type"].endswith("arguments.done")]
    final = [item["arguments"] for item in answer.payloads[-1]["response"]["output"]]
    assert [item["arguments"] for item in built(answer.payloads, name)] == streamed
    assert streamed != final
    assert [json_codec.decode(text) for text in streamed] == [json_codec.decode(text) for text in final]


MARKUP = [
    "<think>Hm.</think>Hello.",
    '<tool_call>\n{"name": "look", "arguments": {"a": 1}}\n</tool_call>',
    "<tool_call><function=look><parameter=a>1</parameter></function></tool_call>",
    '<|channel|>commentary to=functions.look<|message|>{"a":1}<|call|>',
    '[TOOL_CALLS][{"name": "look", "arguments": {"a": 1}}]',
]


@UPSTREAMS
@pytest.mark.parametrize("text", MARKUP)
def test_markup_of_a_model_whose_parser_is_off_is_text_and_no_call(name: DialectName, text: str) -> None:
    deltas = [
        {
            "type": "response.output_text.delta",
            "item_id": "m",
            "output_index": 0,
            "content_index": 0,
            "delta": character,
        }
        for character in text
    ]
    payloads = [CREATED, *deltas, completed(message(text, id="m"))]
    events = client_events(payloads, dialect_for(name))
    check_stream(events)
    assert built(payloads, name) == built([CREATED, completed(message(text))], name) == [message(text)]
    assert [event.data["delta"] for event in events if event.type.endswith(".delta")] == list(text)


@UPSTREAMS
def test_call_that_only_the_final_object_has_comes_after_its_markup(name: DialectName) -> None:
    """Without a streaming parser the call's markup was text; the final object has it as a call."""
    added = {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "id": "m"}}
    delta = {"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "delta": MARKUP[1]}
    payloads = [CREATED, added, delta, completed(message(MARKUP[1], id="m"), {**call('{"a": 1}'), "id": "fc"})]
    check_stream(client_events(payloads, dialect_for(name)))
    assert built(payloads, name) == [message(MARKUP[1]), call('{"a": 1}')]


@UPSTREAMS
def test_call_that_was_streamed_without_being_announced_is_not_repeated(name: DialectName) -> None:
    payloads = [CREATED, *call_stream('{"a":1}', done='{"a":1}')[1:3], completed(call('{"a": 1}', call_id="another"))]
    check_stream(client_events(payloads, dialect_for(name)))
    assert [item["arguments"] for item in built(payloads, name)] == ['{"a":1}']


@UPSTREAMS
@pytest.mark.parametrize("status", ["incomplete", "failed"])
def test_call_that_only_an_unfinished_final_object_has_is_not_made(name: DialectName, status: str) -> None:
    delta = {"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "delta": "hi"}
    payloads = [CREATED, delta, completed(call('{"a": 1}'), status=status)]
    assert [item["type"] for item in built(payloads, name)] == ["message"]


@AS_VLLM
@pytest.mark.parametrize("blank", ["\n\n", " ", "\u3000", ""])
def test_message_of_white_space_before_a_call_is_not_shown(name: DialectName, blank: str) -> None:
    place = {"item_id": "m", "output_index": 0}
    payloads = [
        CREATED,
        {"type": "response.output_item.added", "output_index": 0, "item": {**message(""), "id": "m", "content": []}},
        {"type": "response.output_text.delta", "content_index": 0, "delta": blank, **place},
        {"type": "response.output_text.done", "content_index": 0, "text": blank, **place},
        {"type": "response.output_item.done", "output_index": 0, "item": message(blank, id="m")},
        *call_stream("{}", done="{}", index=1),
        completed(),
    ]
    events = client_events(payloads, dialect_for(name))
    check_stream(events)
    assert [item["type"] for item in events[-1].data["response"]["output"]] == ["function_call"]


@UPSTREAMS
def test_settings_of_the_servers_response_are_not_shown(name: DialectName) -> None:
    (answer,) = recorded("function_tools/tool-call-required-Qwen-Qwen3-30B-A3B-FP8-streaming.yaml")
    final: Json = answer.payloads[-1]["response"]
    assert final["text"]["format"]["name"] == "tool_calling_response"
    assert not {"store", "error", "completed_at"} & set(final)
    assert {"input_messages", "output_messages", "kv_transfer_params"} <= set(final)
    events = client_events(answer.payloads, dialect_for(name))
    shown = [event.data["response"] for event in events if "response" in event.data]
    assert {name for response in shown for name in response} == set(in_progress_response())


def test_no_end_mark_is_sent_and_none_is_missed() -> None:
    answers = [answer for answer in all_recorded(stream=True, openai=False) if "direct-vllm" not in answer.name]
    assert len(answers) > 10
    assert not [answer.name for answer in answers if b"[DONE]" in (answer.stream or b"")]


@AS_VLLM
@pytest.mark.parametrize(
    "payload",
    [
        {"error": {"message": "Engine died.", "type": "InternalServerError", "param": None, "code": 500}},
        {"object": "error", "message": "Engine died.", "type": "InternalServerError", "param": None, "code": 500},
    ],
    ids=["wrapped", "flat"],
)
def test_bare_error_in_a_stream_is_a_failure_with_its_words(name: DialectName, payload: Json) -> None:
    failed = Finished("failed", error={"code": "server_error", "message": "Engine died."})
    assert read_payloads([CREATED, payload], dialect_for(name))[1:] == [failed]
    assert list(dialect_for(name).read_response(payload)) == [failed]
