from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from attache_core.errors import UpstreamError
from attache_core.events.accumulator import Accumulator
from attache_core.events.item_assembly import EMPTY_BYTES
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
from attache_core.events.text_done import SaidEvent, TextDone
from attache_core.json_codec import Json
from core.events.pipeline import accumulated, new_accumulator

COMPLETED = Finished("completed")
CUT_OFF = Finished(
    "failed",
    error={"code": "server_error", "message": "The inference server ended its answer before it was complete."},
)


def text_part(text: str, **fields: Any) -> Json:
    return {"type": "output_text", "annotations": [], "logprobs": [], "text": text, **fields}


def message(*parts: Json, status: str = "completed") -> Json:
    return {"type": "message", "status": status, "content": list(parts), "role": "assistant"}


def reasoning(*texts: str, **fields: Any) -> Json:
    item: Json = {"type": "reasoning", "summary": []}
    content = [{"type": "reasoning_text", "text": text} for text in texts]
    return {**item, **({"content": content} if content else {}), **fields}


def call(arguments: str, name: str = "look", call_id: str = "call_a", status: str = "completed") -> Json:
    return {"type": "function_call", "status": status, "arguments": arguments, "call_id": call_id, "name": name}


def call_added(key: str, call_id: str = "call_a", name: str = "look") -> ItemAdded:
    return ItemAdded(key, call("", name, call_id, "in_progress"))


MESSAGE_BEGUN = message(status="in_progress")


def fed(*said: SaidEvent) -> list[ModelEvent]:
    accumulator = new_accumulator()
    return [event for one in said for event in accumulator.feed(one)]


def test_delta_for_an_unknown_item_opens_it_and_its_part() -> None:
    delta = Delta("m", 0, "text", "hi")
    assert fed(delta, COMPLETED) == [
        ItemAdded("m", MESSAGE_BEGUN),
        PartAdded("m", 0, "output_text"),
        delta,
        PartDone("m", 0, text_part("hi")),
        ItemDone("m", message(text_part("hi"))),
        COMPLETED,
    ]


def test_call_with_whole_arguments_ends_when_the_next_item_begins_and_its_own_end_adds_nothing() -> None:
    first, second = call_added("a", "call_a"), call_added("b", "call_b")
    said = fed(first, Delta("a", None, "arguments", '{"n":1}'), second, ItemDone("a", call('{"n":1}')))
    assert said == [first, Delta("a", None, "arguments", '{"n":1}'), ItemDone("a", call('{"n":1}')), second]


@pytest.mark.parametrize("so_far", ["", "{", '{"n":{}', "}", "1"])
def test_call_whose_arguments_are_not_whole_goes_on_beside_the_next(so_far: str) -> None:
    first, second, rest = (
        call_added("a", "call_a"),
        call_added("b", "call_b"),
        Delta("a", None, "arguments", ' {"n":1}'),
    )
    said = fed(first, Delta("a", None, "arguments", so_far), second, rest)
    assert said == [first, *([Delta("a", None, "arguments", so_far)] if so_far else []), second, rest]


def test_more_of_a_call_that_was_left_whole_is_an_error() -> None:
    with pytest.raises(UpstreamError, match="went back"):
        fed(
            call_added("a"),
            Delta("a", None, "arguments", "{}"),
            call_added("b", "call_b"),
            Delta("a", None, "arguments", "x"),
        )


def test_item_that_comes_whole_is_streamed_in_one_delta() -> None:
    done = ItemDone("r", reasoning("a", "b", summary=[{"type": "summary_text", "text": "s"}]))
    assert fed(done) == [
        ItemAdded("r", reasoning()),
        PartAdded("r", 0, "summary_text"),
        Delta("r", 0, "summary_text", "s"),
        PartDone("r", 0, {"type": "summary_text", "text": "s"}),
        PartAdded("r", 0, "reasoning_text"),
        Delta("r", 0, "reasoning_text", "a"),
        PartDone("r", 0, {"type": "reasoning_text", "text": "a"}),
        PartAdded("r", 1, "reasoning_text"),
        Delta("r", 1, "reasoning_text", "b"),
        PartDone("r", 1, {"type": "reasoning_text", "text": "b"}),
        done,
    ]


def test_final_text_that_goes_on_from_the_deltas_brings_the_rest() -> None:
    said = fed(Delta("m", 0, "text", "Hel"), PartDone("m", 0, text_part("Hello")), COMPLETED)
    assert [event.text for event in said if isinstance(event, Delta)] == ["Hel", "lo"]
    assert said[-2] == ItemDone("m", message(text_part("Hello")))


@pytest.mark.parametrize("end", [TextDone("m", 0, "text", "Bye"), PartDone("m", 0, text_part("Bye")), None])
def test_final_text_that_contradicts_the_deltas_wins_and_the_deltas_stay(end: SaidEvent | None) -> None:
    ends: list[SaidEvent] = [ItemDone("m", message(text_part("Bye")))] if end is None else [end]
    said = fed(Delta("m", 0, "text", "Hello"), *ends, COMPLETED)
    assert [event.text for event in said if isinstance(event, Delta)] == ["Hello"]
    assert said[-3:-1] == [PartDone("m", 0, text_part("Bye")), ItemDone("m", message(text_part("Bye")))]


@pytest.mark.parametrize("streamed", ['{"a": 1, "b": 2}', '{"b":2,"a":1.0}'])
@pytest.mark.parametrize("done", [True, False])
def test_final_arguments_that_say_the_same_in_other_characters_do_not_replace_the_streamed(
    streamed: str, done: bool
) -> None:
    final = '{"a":1,"b":2}'
    ends: list[SaidEvent] = [TextDone("f", None, "arguments", final)] if done else []
    said = fed(call_added("f"), Delta("f", None, "arguments", streamed), *ends, ItemDone("f", call(final)))
    assert said[1:] == [Delta("f", None, "arguments", streamed), ItemDone("f", call(streamed))]


def test_final_arguments_that_say_something_else_replace_the_streamed() -> None:
    said = fed(call_added("f"), Delta("f", None, "arguments", '{"a":1}'), ItemDone("f", call('{"a":true}')))
    assert said[1:] == [Delta("f", None, "arguments", '{"a":1}'), ItemDone("f", call('{"a":true}'))]


def test_final_input_of_a_custom_tool_is_text_though_it_looks_like_json() -> None:
    given = {"type": "custom_tool_call", "status": "completed", "call_id": "c", "name": "run", "input": '{"a":1}'}
    said = fed(ItemAdded("f", {**given, "input": ""}), Delta("f", None, "input", '{"a": 1}'), ItemDone("f", given))
    assert said[-1] == ItemDone("f", given)


@pytest.mark.parametrize("text", ["", None])
def test_end_without_text_does_not_take_back_what_was_said(text: str | None) -> None:
    ends = PartDone("m", 0, {"type": "output_text", "text": text}), ItemDone("m", message())
    assert fed(Delta("m", 0, "text", "hi"), *ends)[-1] == ItemDone("m", message(text_part("hi")))
    arguments = {**call(""), "arguments": text}
    assert fed(call_added("f"), Delta("f", None, "arguments", "{}"), ItemDone("f", arguments))[-1] == ItemDone(
        "f", call("{}")
    )


def test_duplicates_and_late_events_of_an_ended_item_say_nothing() -> None:
    accumulator = new_accumulator()
    start, delta, done = ItemAdded("m", message()), Delta("m", 0, "text", "hi"), ItemDone("m", message(text_part("hi")))
    for event in (Started({}), start, delta, done):
        accumulator.feed(event)
    repeated: list[SaidEvent] = [
        Started({}),
        start,
        PartAdded("m", 0, "output_text"),
        delta,
        TextDone("m", 0, "text", "hi"),
        AnnotationAdded("m", 0, {}),
        PartDone("m", 0, text_part("hi")),
        ItemEvent("m", "response.mcp_call.failed"),
        done,
    ]
    assert [accumulator.feed(event) for event in repeated] == [[]] * len(repeated)


def test_nothing_is_said_after_the_end() -> None:
    accumulator = new_accumulator()
    assert accumulator.feed(COMPLETED) == [COMPLETED]
    assert accumulator.feed(Delta("m", 0, "text", "x")) == []
    assert accumulator.feed(Finished("failed")) == []
    assert accumulator.close() == []
    assert accumulator.finished == COMPLETED


def test_ends_of_a_message_that_never_was_open_no_message() -> None:
    ends: list[SaidEvent] = [
        TextDone("m", 0, "text", ""), PartDone("m", 0, text_part("")), ItemDone("m", message(text_part(""))),
    ]  # fmt: skip
    accumulator = new_accumulator()
    accumulated([ItemDone("f", call("{}")), *ends, COMPLETED], accumulator)
    assert accumulator.items == [("f", call("{}"))]


def test_empty_delta_opens_nothing() -> None:
    assert fed(Delta("m", 0, "text", "")) == []


def test_text_item_ends_when_the_next_item_begins() -> None:
    said = fed(Delta("r", 0, "reasoning_text", "hm"), Delta("m", 0, "text", "hi"))
    assert [type(event).__name__ + " " + event.key for event in said if not isinstance(event, (Started, Finished))] == [
        "ItemAdded r", "PartAdded r", "Delta r", "PartDone r", "ItemDone r", "ItemAdded m", "PartAdded m", "Delta m",
    ]  # fmt: skip


def test_text_that_goes_back_to_an_item_left_open_is_an_upstream_error() -> None:
    accumulator = new_accumulator()
    accumulator.feed(Delta("m", 0, "text", "hi"))
    accumulator.feed(Delta("r", 0, "reasoning_text", "hm"))
    assert accumulator.feed(ItemDone("m", message(text_part("hi")))) == [], "its late end is no news"
    with pytest.raises(UpstreamError):
        accumulator.feed(Delta("m", 0, "text", "there"))


def test_interleaved_calls_keep_all_of_their_arguments() -> None:
    accumulator = new_accumulator()
    said: list[SaidEvent] = [
        call_added("a", "call_a"),
        call_added("b", "call_b"),
        Delta("a", None, "arguments", '{"a"'),
        Delta("b", None, "arguments", '{"b"'),
        Delta("a", None, "arguments", ":1}"),
        Delta("b", None, "arguments", ":2}"),
        ItemDone("b", call('{"b":2}', call_id="call_b")),
        COMPLETED,
    ]
    strict = accumulated(said, accumulator)
    assert accumulator.items == [("a", call('{"a":1}')), ("b", call('{"b":2}', call_id="call_b"))], (
        "in order of opening"
    )
    assert [event.key for event in strict if isinstance(event, ItemDone)] == ["b", "a"]


def test_item_of_another_type_under_the_same_key_is_another_item() -> None:
    accumulator = new_accumulator()
    said: list[SaidEvent] = [
        Delta("0", 0, "reasoning_text", "hm"), Delta("0", 0, "text", "hi"), ItemDone("0", call("{}")), COMPLETED,
    ]  # fmt: skip
    accumulated(said, accumulator)
    assert accumulator.items == [
        ("0", reasoning("hm")),
        ("0/message", message(text_part("hi"))),
        ("0/function_call", call("{}")),
    ]


def test_parts_are_numbered_densely_whatever_the_server_calls_them() -> None:
    said = fed(Delta("m", 4, "text", "a"), Delta("m", 9, "refusal", "no"), Delta("m", 9, "refusal", "!"), COMPLETED)
    assert [event for event in said if isinstance(event, PartAdded)] == [
        PartAdded("m", 0, "output_text"),
        PartAdded("m", 1, "refusal"),
    ]
    assert said[-2] == ItemDone("m", message(text_part("a"), {"type": "refusal", "refusal": "no!"}))


def test_part_that_begins_again_under_its_number_is_another_part() -> None:
    part: list[SaidEvent] = [
        PartAdded("m", 0, "output_text"),
        Delta("m", 0, "text", "a"),
        PartDone("m", 0, text_part("a")),
    ]
    assert fed(*part, *part, COMPLETED)[-2] == ItemDone("m", message(text_part("a"), text_part("a")))


@pytest.mark.parametrize(
    "stranger",
    [{"type": "output_audio", "data": "UklG"}, {"type": "reasoning_text", "text": "hm"}, {}, {"type": None}, 3],
)
def test_part_that_the_api_has_not_in_a_message_is_left_out(stranger: Any) -> None:
    with capture_logs() as logs:
        said = fed(ItemDone("m", message(stranger, text_part("a"), stranger)))
    assert said == fed(ItemDone("m", message(text_part("a"))))
    assert [entry.get("parts") for entry in logs] == ([2] if isinstance(stranger, dict) else [])


@pytest.mark.parametrize("name", ["summary", "content"])
@pytest.mark.parametrize("kind", ["output_text", "refusal", "encrypted"])
def test_part_that_the_api_has_not_in_reasoning_is_left_out(name: str, kind: str) -> None:
    stranger = {"type": kind, "text": "hm", "refusal": "hm"}
    assert fed(ItemDone("r", {**reasoning("a"), name: [stranger]}))[-1] == ItemDone(
        "r", {**reasoning("a"), name: []} if name == "summary" else {"type": "reasoning", "summary": []}
    )


def test_summary_of_a_message_is_left_out() -> None:
    summary = [{"type": "summary_text", "text": "s"}]
    assert fed(ItemDone("m", {**message(text_part("a")), "summary": summary})) == fed(
        ItemDone("m", message(text_part("a")))
    )


def test_annotations_and_logprobs_are_in_the_part() -> None:
    citation, logprob = {"type": "url_citation", "url": "https://example.org"}, {"token": "a", "logprob": -1.0}
    delta = Delta("m", 3, "text", "a", {"logprobs": [logprob]})
    said = fed(delta, AnnotationAdded("m", 3, citation), COMPLETED)
    assert said[2:4] == [Delta("m", 0, "text", "a", {"logprobs": [logprob]}), AnnotationAdded("m", 0, citation)]
    whole = {**logprob, "bytes": [97]}
    assert said[4] == PartDone("m", 0, text_part("a", annotations=[citation], logprobs=[whole]))


def test_citations_that_come_with_the_end_of_a_part_are_in_it() -> None:
    part = text_part("a", annotations=[{"type": "url_citation"}])
    assert fed(Delta("m", 0, "text", "a"), PartDone("m", 0, part), COMPLETED)[-2] == ItemDone("m", message(part))


@pytest.mark.parametrize("end", [ItemDone("f", call("{}", call_id="")), TextDone("f", None, "arguments", "{}", "look")])
def test_call_is_announced_once_its_name_is_known(end: SaidEvent) -> None:
    accumulator = new_accumulator()
    assert accumulator.feed(Delta("f", None, "arguments", "{")) == []
    assert [event for event in accumulator.feed(end) if not isinstance(event, ItemDone)] == [
        call_added("f", "call_0"),
        Delta("f", None, "arguments", "{"),
        Delta("f", None, "arguments", "}"),
    ]


def test_call_that_completes_without_a_name_is_an_upstream_error() -> None:
    with pytest.raises(UpstreamError):
        fed(Delta("f", None, "arguments", "{}"), COMPLETED)


def test_call_that_is_cut_off_before_its_name_is_not_shown() -> None:
    assert accumulated([Delta("f", None, "arguments", "{}")]) == [CUT_OFF]


@pytest.mark.parametrize("given", ["", None, "call_a"])
def test_call_id_that_is_missing_or_taken_is_made(given: str | None) -> None:
    accumulator = new_accumulator()
    accumulated([ItemDone("a", call("{}")), ItemDone("b", {**call("{}"), "call_id": given}), COMPLETED], accumulator)
    assert [item["call_id"] for _, item in accumulator.items] == ["call_a", "call_0"]


def test_call_id_announced_stays_when_the_end_has_another() -> None:
    said = fed(call_added("f", "call_a"), ItemDone("f", call("{}", call_id="call_b")))
    assert said[-1] == ItemDone("f", call("{}", call_id="call_a"))


def test_arguments_that_are_an_object_are_its_json() -> None:
    assert fed(ItemDone("f", {**call(""), "arguments": {"a": 1}}))[-1] == ItemDone("f", call('{"a":1}'))


def test_custom_call_streams_its_input() -> None:
    item = {"type": "custom_tool_call", "status": "completed", "call_id": "c", "input": "x\n", "name": "patch"}
    assert fed(ItemDone("c", item)) == [
        ItemAdded("c", {**item, "status": "in_progress", "input": ""}),
        Delta("c", None, "input", "x\n"),
        ItemDone("c", item),
    ]


def test_items_of_other_types_and_their_events_pass_as_they_are() -> None:
    begun = {"type": "mcp_call", "status": "in_progress", "output": None}
    events: list[ModelEvent] = [
        ItemAdded("x", begun),
        ItemEvent("x", "response.mcp_call.in_progress"),
        ItemDone("x", {**begun, "status": "completed", "output": "5"}),
    ]
    assert fed(*events) == events


def test_event_of_an_items_life_without_such_an_item_says_nothing() -> None:
    assert fed(ItemEvent("unknown", "response.mcp_call.in_progress")) == []
    accumulator = new_accumulator()
    accumulator.feed(call_added("f"))
    assert accumulator.feed(ItemEvent("f", "response.mcp_call_arguments.delta", {"delta": "{}"})) == []


def test_answer_that_is_cut_off_ends_its_items_as_incomplete_and_fails() -> None:
    said: list[SaidEvent] = [
        call_added("f"),
        Delta("f", None, "arguments", '{"a'),
        ItemAdded("w", {"type": "web_search_call", "status": "in_progress"}),
        Delta("m", 0, "text", "hal"),
    ]
    strict = accumulated(said)
    assert strict[-5:] == [
        ItemDone("f", call('{"a', status="incomplete")),
        ItemDone("w", {"type": "web_search_call", "status": "failed"}),
        PartDone("m", 0, text_part("hal")),
        ItemDone("m", message(text_part("hal"), status="incomplete")),
        CUT_OFF,
    ]
    assert accumulated([Delta("r", 0, "reasoning_text", "hm")])[-2] == ItemDone(
        "r", reasoning("hm", status="incomplete")
    )


def test_item_that_the_server_calls_incomplete_is_incomplete() -> None:
    item = message(text_part("hal"), status="incomplete")
    assert fed(ItemDone("m", item))[-1] == ItemDone("m", item)


@pytest.mark.parametrize("size", [1, 3, 50, 1000])
def test_bound_on_what_is_retained_holds_however_the_text_is_cut(size: int) -> None:
    def feed_text(length: int) -> None:
        accumulator = Accumulator(max_bytes=1500 + 2 * EMPTY_BYTES)
        text = "ü" * (length // 2)
        for start in range(0, len(text), size):
            accumulator.feed(Delta("m", 0, "text", text[start : start + size]))
        accumulator.close()

    feed_text(1000)
    with pytest.raises(UpstreamError) as raised:
        feed_text(1600)
    assert raised.value.code == "upstream_limit"


@pytest.mark.parametrize(
    "said",
    [
        lambda number: ItemDone(f"m{number}", message()),
        lambda number: ItemAdded(f"x{number}", {"type": "x"}),
        lambda number: PartAdded("m", number, "output_text"),
        lambda number: AnnotationAdded("m", 0, {"n": number}),
        lambda number: Delta("m", 0, "text", "a", {"logprobs": [{"token": "a"}]}),
        lambda number: ItemDone("x", {"type": "x", "big": "x" * 4000}),
        lambda number: TextDone("m", 0, "text", "x" * 4000),
    ],
)
def test_everything_that_is_retained_counts(said: Any) -> None:
    accumulator = Accumulator(max_bytes=1500 + 2 * EMPTY_BYTES)
    with pytest.raises(UpstreamError):  # noqa: PT012 - any of the many may be the one too many
        for number in range(200):
            accumulator.feed(said(number))


def test_text_with_a_lone_surrogate_survives() -> None:
    assert fed(Delta("m", 0, "text", "\ud83d"), COMPLETED)[-2] == ItemDone("m", message(text_part("\ud83d")))


def test_each_accumulator_makes_its_own_random_call_ids() -> None:
    ids = []
    for _ in range(2):
        accumulator = Accumulator()
        accumulator.feed(ItemDone("f", call("{}", call_id="")))
        ids.append(accumulator.items[0][1]["call_id"])
    assert ids[0] != ids[1]
    assert all(call_id.startswith("call_") and len(call_id) <= 64 for call_id in ids)
