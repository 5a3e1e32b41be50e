"""What all readers have in common. What one server does that others do not has a file of its own beside this one."""

from __future__ import annotations

from typing import get_args

import pytest

from attache_core.errors import UpstreamError
from attache_core.events.dialects import CanonicalReader, DialectName, dialect_for
from attache_core.events.event import Event, terminal_event
from attache_core.events.model_events import Delta, Finished, ItemAdded, ItemDone, ItemEvent, Started
from attache_core.json_codec import Json
from core.events.canonical_stream import check_stream
from core.events.dialects.payloads import CREATED, built, call, call_stream, completed, message
from core.events.pipeline import accumulated, client_events, new_accumulator, read_payloads, sequenced
from core.events.recordings import recorded

DIALECTS = get_args(DialectName)
UPSTREAMS = pytest.mark.parametrize("name", DIALECTS)


def test_phase_and_namespace_are_kept() -> None:
    items = [message("hi", phase="commentary"), {**call("{}"), "namespace": "ns"}]
    assert built([CREATED, completed(*items)]) == items


@pytest.mark.parametrize("name", ["openai", "llama_cpp"])
def test_done_arguments_win_over_deltas_that_contradict_them(name: DialectName) -> None:
    payloads = [CREATED, *call_stream("{}", '{"a":1}', done='{"a":1}'), completed()]
    events = client_events(payloads, dialect_for(name))
    check_stream(events, joins="unless contradicted")
    assert events[-1].data["response"]["output"] == [{"id": "function_call_0", **call('{"a":1}')}]


@UPSTREAMS
def test_done_arguments_count_when_the_item_never_ends(name: DialectName) -> None:
    payloads = [CREATED, *call_stream('{"a"', done='{"a":1}')[:-1], completed()]
    events = client_events(payloads, dialect_for(name))
    check_stream(events)
    assert [event.data["delta"] for event in events if event.type.endswith(".delta")] == ['{"a"', ":1}"]
    assert events[-1].data["response"]["output"] == [{"id": "function_call_0", **call('{"a":1}')}]


def test_item_announced_under_one_id_and_continued_under_another_is_one_item() -> None:
    payloads = call_stream('{"a":', done='{"a":1}')
    for payload in payloads[1:3]:
        payload["item_id"] = "another"
    payloads[3]["item"]["id"] = "a third"
    assert built([CREATED, *payloads, completed()]) == [call('{"a":1}')]


def test_item_announced_under_the_id_of_the_one_before_is_another_item() -> None:
    def texts(kind: str, index: int) -> list[Json]:
        return [
            {"type": "response.output_item.added", "output_index": index, "item": {"type": kind, "id": "old"}},
            {
                "type": f"response.{'reasoning' if kind == 'reasoning' else 'output'}_text.delta",
                "item_id": "old" if index == 0 else "new",
                "output_index": index,
                "content_index": index,
                "delta": kind,
            },
        ]

    payloads = [CREATED, *texts("reasoning", 0), *texts("message", 1), completed()]
    reasoning = {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "reasoning"}]}
    assert built(payloads) == [reasoning, message("message")]


def test_output_index_that_never_counts_tells_items_apart_by_type() -> None:
    payloads = [
        CREATED,
        {"type": "response.reasoning_text.delta", "output_index": 0, "delta": "hm"},
        {"type": "response.output_text.delta", "output_index": 0, "delta": "ok"},
        completed(),
    ]
    reasoning = {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]}
    assert built(payloads) == [reasoning, message("ok")]


def test_done_marker_is_only_a_marker_when_it_is_the_whole_payload() -> None:
    reader = dialect_for("auto")
    assert list(reader.read_data(b"[DONE]")) == []
    (delta,) = reader.read_data(b'{"type":"response.output_text.delta","delta":"[DONE]"}')
    assert delta == Delta("item_0", 0, "text", "[DONE]")


@UPSTREAMS
@pytest.mark.parametrize(
    "payload",
    [
        {"object": "chat.completion.chunk", "choices": [{"delta": {"content": "hi"}}]},
        {"id": "chatcmpl-1"},
        {"type": 7},
        {"type": "response.output_text.delta"},
        {"type": "response.output_text.delta", "delta": None},
        {"type": "response.output_item.added", "item": None},
        {"type": "response.output_item.done", "item": {"id": "x"}},
        {"type": "response.completed"},
        {"type": "response.completed", "response": {"output": ["x"]}},
    ],
)
def test_what_is_no_responses_event_is_an_upstream_error(name: DialectName, payload: Json) -> None:
    with pytest.raises(UpstreamError) as raised:
        list(dialect_for(name).read(payload))
    assert (raised.value.http_status, raised.value.code) == (502, "bad_upstream_response")


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b'"[DONE]"', b"\xff", b"[DONE] "])
def test_data_that_is_no_json_object_is_an_upstream_error(data: bytes) -> None:
    with pytest.raises(UpstreamError):
        list(dialect_for("auto").read_data(data))


@UPSTREAMS
def test_unknown_event_types_are_dropped(name: DialectName) -> None:
    payloads: list[Json] = [
        {"type": "codex.rate_limits", "limits": {}},
        {"type": "response.something.new", "item_id": "x"},
        {"type": "response.mcp_call.exploded", "item_id": "x"},
        {"type": "response.content_part.moved", "part": {"type": "output_text"}},
        {"type": "response.content_part.added", "part": {"type": "output_audio"}},
        {"type": "keepalive"},
    ]
    assert read_payloads(payloads, dialect_for(name)) == []


@UPSTREAMS
@pytest.mark.parametrize(
    "payload",
    [
        {"type": "error", "error": {"message": "no", "code": "overloaded", "type": "server_error"}},
        {"type": "error", "message": "no", "code": "overloaded", "param": None},
        {"error": {"message": "no", "code": "overloaded"}},
        {"type": "response.failed", "response": {"error": {"message": "no", "code": "overloaded"}}},
        {
            "type": "response.completed",
            "response": {"status": "failed", "error": {"message": "no", "code": "overloaded"}},
        },
    ],
)
def test_failure_inside_a_200_is_the_outcome(name: DialectName, payload: Json) -> None:
    error = {"code": "overloaded", "message": "no"}
    assert read_payloads([CREATED, payload], dialect_for(name))[1:] == [Finished("failed", error=error)]


@pytest.mark.parametrize(
    "error", [{"code": 500, "message": ""}, {}, {"code": None, "message": None}, "", {"code": True}]
)
def test_failure_that_says_nothing_has_a_code_and_a_message(error: object) -> None:
    (finished,) = read_payloads([{"type": "error", "error": error}])
    assert finished == Finished("failed", error={"code": "server_error", "message": "The inference server failed."})


def test_first_failure_counts_and_what_follows_is_ignored() -> None:
    (answer,) = recorded("errors/context_length_exceeded-stream.yaml")
    events = client_events(answer.payloads)
    assert [event.type for event in events] == ["response.created", "response.in_progress", "response.failed"]
    assert events[-1].data["response"]["error"] == answer.payloads[-1]["response"]["error"]


def test_items_of_the_final_object_count_when_none_was_streamed() -> None:
    assert built([CREATED, completed(message("hi", id="m"))]) == [message("hi")]


def test_items_of_the_final_object_do_not_count_beside_streamed_ones() -> None:
    delta = {"type": "response.output_text.delta", "item_id": "m", "delta": "hi"}
    assert built([CREATED, delta, completed(message("ho", id="other"))]) == [message("hi")]


@pytest.mark.parametrize(
    "body",
    [{}, {"output": []}, {"status": "completed"}, {"status": "in_progress", "output": []}, {"status": {}, "output": []},
     {"object": "chat.completion", "choices": []}, {"status": "completed", "output": [1]}],
)  # fmt: skip
def test_plain_answer_that_is_no_response_is_an_upstream_error(body: Json) -> None:
    with pytest.raises(UpstreamError):
        list(dialect_for("auto").read_response(body))


def test_plain_answer_with_two_calls_of_one_call_id_keeps_both() -> None:
    body = {"status": "completed", "output": [call('{"n":1}'), call('{"n":2}'), call("{}", call_id="")]}
    accumulator = new_accumulator()
    accumulated(dialect_for("auto").read_response(body), accumulator)
    assert [item for _, item in accumulator.items] == [
        call('{"n":1}'),
        call('{"n":2}', call_id="call_0"),
        call("{}", call_id="call_1"),
    ]


def test_canonical_items_keep_their_ids_and_are_keyed_by_them() -> None:
    item = message("hi", id="msg_a")
    done = {"type": "response.output_item.done", "output_index": 0, "item": item}
    assert list(CanonicalReader().read(done)) == [ItemDone("msg_a", item)]


def test_canonical_events_of_an_items_life_are_kept() -> None:
    item = {"type": "mcp_call", "id": "mcp_a", "status": "in_progress"}
    reader = CanonicalReader()
    added = {"type": "response.output_item.added", "output_index": 0, "item": item}
    delta = {"type": "response.mcp_call_arguments.delta", "delta": "{}", "item_id": "mcp_a", "output_index": 0}
    assert [*reader.read(added), *reader.read({**delta, "sequence_number": 9})] == [
        ItemAdded("mcp_a", item),
        ItemEvent("mcp_a", "response.mcp_call_arguments.delta", {"delta": "{}"}),
    ]


def test_terminal_event_alone_is_a_whole_canonical_answer() -> None:
    response: Json = {"id": "resp_a", "status": "completed", "output": [message("hi", id="msg_a")], "usage": None}
    said = list(CanonicalReader().read(terminal_event(response).data))
    assert said == [ItemDone("msg_a", response["output"][0]), Finished("completed")]
    events: list[Event] = sequenced(accumulated(said))
    check_stream(events)
    assert events[-1].data["response"]["output"] == response["output"]


def test_only_the_first_start_is_told() -> None:
    payloads = [CREATED, {**CREATED, "type": "response.queued"}, {**CREATED, "type": "response.in_progress"}]
    assert accumulated(read_payloads(payloads))[:1] == [Started(CREATED["response"])]
    assert len(accumulated(read_payloads(payloads))) == 2
