"""A Chat Completions answer, however the server cuts it, becomes one valid stream of the Responses API."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from attache_core.errors import ClientError, UpstreamError
from attache_core.events.accumulator import CUT_OFF
from attache_core.events.chat_completions import ChatCompletionsReader
from attache_core.events.chat_completions.calls import MAX_NAME_CHARS
from attache_core.events.model_events import Finished, ModelEvent
from attache_core.events.text_done import SaidEvent
from attache_core.json_codec import Json, encode
from core.events.canonical_stream import check_stream
from core.events.pipeline import accumulated, new_accumulator, sequenced

USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}


def chunk(delta: Json | None = None, finish: str | None = None, **fields: Any) -> Json:
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish, **fields}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "theirs", "choices": [choice]}


def calling(*entries: Json, **fields: Any) -> Json:
    return chunk({"tool_calls": list(entries)}, **fields)


def call(index: int | None, call_id: str | None = None, name: str | None = None, arguments: Any = None) -> Json:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    entry: Json = {"index": index, "id": call_id, "type": "function", "function": function}
    return {key: value for key, value in entry.items() if value is not None}


STOP = chunk({}, "stop")
CALLS = chunk({}, "tool_calls")


def strict(payloads: Iterable[Json], done: bool = True) -> list[ModelEvent]:
    reader = ChatCompletionsReader()
    said: list[SaidEvent] = []
    for payload in payloads:
        said += reader.read_data(encode(payload))
    said += reader.read_data(b"[DONE]") if done else reader.close()
    events = accumulated(said)
    check_stream(sequenced(events))
    return events


def finished(events: list[ModelEvent]) -> Finished:
    last = events[-1]
    assert isinstance(last, Finished)
    return last


def items_of(*payloads: Json) -> list[Json]:
    """The output of a stream, without ids."""
    response = sequenced(strict(payloads))[-1].data["response"]
    return [{name: value for name, value in item.items() if name != "id"} for item in response["output"]]


def message(text: str, status: str = "completed", **part: Any) -> Json:
    body = {"type": "output_text", "annotations": [], "logprobs": [], "text": text, **part}
    return {"type": "message", "status": status, "content": [body], "role": "assistant"}


def reasoning(text: str) -> Json:
    return {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": text}]}


def function_call(call_id: str, arguments: str = "{}", name: str = "look") -> Json:
    return {
        "type": "function_call",
        "status": "completed",
        "arguments": arguments,
        "call_id": call_id,
        "name": name,
    }


# Text and reasoning


def test_text_is_one_message_under_the_name_of_the_servers_model() -> None:
    role = chunk({"role": "assistant", "content": ""})
    events = sequenced(strict([role, chunk({"content": "Hel"}), chunk({"content": "lo."}), STOP]))

    response = events[-1].data["response"]
    assert (events[-1].type, response["model"]) == ("response.completed", "theirs")
    assert [part["text"] for part in response["output"][0]["content"]] == ["Hello."]
    assert [event.type for event in events[2:5]] == [
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
    ]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_an_item_that_is_closed_before_the_message_opens(field: str) -> None:
    payloads = [chunk({field: "H"}), chunk({field: "m."}), chunk({"content": "Hello."}), STOP]

    types = [event.type for event in sequenced(strict(payloads))]

    assert items_of(*payloads) == [reasoning("Hm."), message("Hello.")]
    assert types[2:10] == [
        "response.output_item.added",
        "response.content_part.added",
        "response.reasoning_text.delta",
        "response.reasoning_text.delta",
        "response.reasoning_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.output_item.added",
    ]


def test_reasoning_under_both_names_is_said_once() -> None:
    assert items_of(chunk({"reasoning_content": "Hm.", "reasoning": "Hm."}), chunk({"content": "Hi"}), STOP) == [
        reasoning("Hm."),
        message("Hi"),
    ]


def test_reasoning_and_text_in_one_chunk_are_two_items() -> None:
    assert items_of(chunk({"reasoning_content": "Hm.", "content": "Hi"}, "stop")) == [reasoning("Hm."), message("Hi")]


def test_reasoning_that_comes_back_is_another_item() -> None:
    payloads = [chunk({"reasoning": "A"}), chunk({"content": "B"}), chunk({"reasoning": "C"}), chunk({"content": "D"})]

    assert items_of(*payloads, STOP) == [reasoning("A"), message("B"), reasoning("C"), message("D")]


def test_refusal_is_a_part_of_the_message() -> None:
    (item,) = items_of(chunk({"content": "Well."}), chunk({"refusal": "I can"}), chunk({"refusal": "not."}), STOP)

    assert item["content"] == [*message("Well.")["content"], {"type": "refusal", "refusal": "I cannot."}]


def test_citation_is_an_annotation_of_the_text() -> None:
    cited = {"start_index": 0, "end_index": 2, "title": "T", "url": "https://example.com"}
    given = {"content": "Hi", "annotations": [{"type": "url_citation", "url_citation": cited}]}

    assert items_of(chunk(given), STOP) == [message("Hi", annotations=[{"type": "url_citation", **cited}])]


def test_whole_answer_with_nothing_in_it_has_no_items() -> None:
    assert (
        items_of(chunk({"role": "assistant", "content": ""}), chunk({"content": None, "tool_calls": None}), STOP) == []
    )


# Log probabilities


def token(text: str, **fields: Any) -> Json:
    return {"token": text, "logprob": -0.5, "bytes": list(text.encode()), "top_logprobs": [], **fields}


def test_log_probabilities_go_with_their_text() -> None:
    other = {"token": "Ho", "logprob": -2, "bytes": None}
    given = token("Hi", top_logprobs=[other])
    expected = {**given, "top_logprobs": [{**other, "bytes": [72, 111]}]}

    (item,) = items_of(chunk({"content": "Hi"}, logprobs={"content": [given], "refusal": None}), STOP)

    assert item["content"][0]["logprobs"] == [expected]


def test_log_probabilities_of_half_a_character_wait_for_the_other_half() -> None:
    first, second = token("\ufffd"), token("é")
    payloads = [
        chunk({"content": ""}, logprobs={"content": [first]}),
        chunk({"content": "é"}, logprobs={"content": [second]}),
    ]

    (item,) = items_of(*payloads, STOP)

    assert item["content"][0]["logprobs"] == [first, second]


def test_log_probabilities_of_reasoning_are_not_those_of_the_text() -> None:
    payloads = [chunk({"reasoning": "Hm"}, logprobs={"content": [token("Hm")]}), chunk({"content": "Hi"}), STOP]

    assert items_of(*payloads) == [reasoning("Hm"), message("Hi")]


# Calls

SPLIT: list[tuple[str, list[Json], list[Json]]] = [
    (
        "id and name first",
        [calling(call(0, "a", "look", "")), calling(call(0, arguments='{"x"')), calling(call(0, arguments=": 1}"))],
        [function_call("a", '{"x": 1}')],
    ),
    ("whole in one chunk", [calling(call(0, "a", "look", "{}"))], [function_call("a")]),
    ("no arguments", [calling(call(0, "a", "look"))], [function_call("a", "{}")]),
    (
        "empty arguments",
        [calling(call(0, "a", "look", "")), calling(call(1, "b", "go", " ")), calling(call(2, "c", "look", "{}"))],
        [function_call("a", "{}"), function_call("b", " {}", "go"), function_call("c", "{}")],
    ),
    ("arguments as an object", [calling(call(0, "a", "look", {"x": 1}))], [function_call("a", '{"x":1}')]),
    (
        "id in each chunk",
        [calling(call(0, "a", "look", "")), calling(call(0, "a", "", "{")), calling(call(0, "a", "", "}"))],
        [function_call("a")],
    ),
    (
        "another id in each chunk",
        [calling(call(0, "a", "look", "")), calling(call(0, "b", None, "{")), calling(call(0, "c", None, "}"))],
        [function_call("a")],
    ),
    (
        "id and name in each chunk",
        [calling(call(0, "a", "look", "{")), calling(call(0, "a", "look", "}"))],
        [function_call("a")],
    ),
    (
        "name repeated before the arguments",
        [calling(call(0, "a", "look")), calling(call(0, "a", "look", "{}"))],
        [function_call("a")],
    ),
    (
        "name in pieces",
        [calling(call(0, "a", "lo")), calling(call(0, None, "ok")), calling(call(0, None, None, "{}"))],
        [function_call("a")],
    ),
    (
        "index missing",
        [calling(call(None, "a", "look")), calling(call(None, None, None, "{")), calling(call(None, "a", None, "}"))],
        [function_call("a")],
    ),
    (
        "interleaved",
        [
            calling(call(0, "a", "look", "{"), call(1, "b", "go", "[")),
            calling(call(1, arguments="]")),
            calling(call(0, arguments="}")),
        ],
        [function_call("a"), function_call("b", "[]", "go")],
    ),
    (
        "several, index missing",
        [calling(call(None, "a", "look", "{}"), call(None, "b", "go", "{}"))],
        [function_call("a"), function_call("b", name="go")],
    ),
    (
        "several, each of index 0",
        [calling(call(0, "a", "look", "{}")), calling(call(0, "b", "look", "{}"))],
        [function_call("a"), function_call("b")],
    ),
    (
        "several whose names come first",
        [calling(call(0, "a", "look"), call(1, "b", "go")), calling(call(0, arguments="{}"), call(1, arguments="{}"))],
        [function_call("a"), function_call("b", name="go")],
    ),
    (
        "text in between calls, each of index 0",
        [calling(call(0, "a", "look", "{}")), chunk({"content": "And"}), calling(call(0, "b", "look", "{}"))],
        [function_call("a"), message("And"), function_call("b")],
    ),
    (
        "end of a call repeated after text",
        [calling(call(0, "a", "look", "{}")), chunk({"content": "And"}), calling(call(0, "a", "look", ""))],
        [function_call("a"), message("And")],
    ),
    (
        "text in between",
        [calling(call(0, "a", "look")), chunk({"content": "And"}), calling(call(0, None, None, "{}"))],
        [function_call("a"), message("And")],
    ),
]


@pytest.mark.parametrize(("payloads", "expected"), [row[1:] for row in SPLIT], ids=[row[0] for row in SPLIT])
def test_call_in_pieces_is_one_call(payloads: list[Json], expected: list[Json]) -> None:
    assert items_of(*payloads, CALLS) == expected


def test_text_that_a_call_interrupts_is_one_message() -> None:
    payloads = [
        calling(call(0, "a", "look", "{")),
        chunk({"content": "And"}),
        calling(call(0, arguments="}")),
        chunk({"content": " so."}),
    ]

    assert items_of(*payloads, CALLS) == [function_call("a"), message("And so.")]


def test_whole_call_is_closed_before_the_next_item_opens() -> None:
    payloads = [
        calling(call(0, "a", "look", "{}")),
        calling(call(1, "b", "look", "{}")),
        chunk({"content": "Hi"}),
        CALLS,
    ]

    events = sequenced(strict(payloads))

    ends = [event for event in events if event.type.startswith("response.output_item")]
    assert [(event.type.rpartition(".")[2], event.data["output_index"]) for event in ends] == [
        ("added", 0),
        ("done", 0),
        ("added", 1),
        ("done", 1),
        ("added", 2),
        ("done", 2),
    ]


def test_calls_without_ids_get_different_ones() -> None:
    first, second = items_of(calling(call(None, None, "look", "{}")), calling(call(None, None, "look", "{}")), CALLS)

    assert first["call_id"] != second["call_id"]
    assert first["call_id"].startswith("call_")


@pytest.mark.parametrize("index", [0, None])
def test_calls_without_ids_around_a_text_are_two(index: int | None) -> None:
    payloads = [
        calling(call(index, None, "look", "{}")),
        chunk({"content": "And"}),
        calling(call(index, None, "go", "{}")),
    ]

    assert [item.get("name") for item in items_of(*payloads, CALLS)] == ["look", None, "go"]


def test_id_that_is_too_long_to_be_sent_back_is_replaced() -> None:
    kept, replaced = items_of(calling(call(0, "a" * 64, "look", "{}"), call(1, "b" * 65, "look", "{}")), CALLS)

    assert (kept["call_id"], len(replaced["call_id"]) <= 64) == ("a" * 64, True)


def test_calls_of_the_same_id_get_different_ones() -> None:
    first, second = items_of(calling(call(0, "a", "look", "{}"), call(1, "a", "look", "{}")), CALLS)

    assert (first["call_id"], first["call_id"] != second["call_id"]) == ("a", True)


def test_former_function_call_is_a_call() -> None:
    payloads = [
        chunk({"function_call": {"name": "look", "arguments": "{"}}),
        chunk({"function_call": {"arguments": "}"}}),
    ]

    (item,) = items_of(*payloads, chunk({}, "function_call"))

    assert (item["name"], item["arguments"]) == ("look", "{}")


def test_text_after_a_call_is_another_message() -> None:
    payloads = [chunk({"content": "A"}), calling(call(0, "a", "look", "{}")), chunk({"content": "B"}), CALLS]

    assert items_of(*payloads) == [message("A"), function_call("a"), message("B")]


def test_call_without_a_name_is_an_upstream_error() -> None:
    with pytest.raises(UpstreamError, match="without naming it"):
        strict([calling(call(0, "a", None, "{}")), CALLS])


def test_name_that_does_not_end_is_an_upstream_error() -> None:
    with pytest.raises(UpstreamError, match="does not end"):
        strict([calling(call(0, "a", f"{number:02}" * 50)) for number in range(MAX_NAME_CHARS // 50)])


def test_call_that_is_cut_off_before_its_arguments_has_none() -> None:
    (item,) = items_of(calling(call(0, "a", "look", "")), chunk({}, "length"))

    assert item == {**function_call("a", ""), "status": "incomplete"}


@pytest.mark.parametrize("done", [True, False], ids=["done", "stream ends"])
def test_call_of_an_answer_without_an_end_is_incomplete(done: bool) -> None:
    response = sequenced(strict([calling(call(0, "a", "look", "{}"))], done))[-1].data["response"]

    assert (response["status"], response["output"][0]["status"]) == ("failed", "incomplete")


# The end

ENDS: list[tuple[str | None, Finished]] = [
    ("stop", Finished("completed")),
    ("tool_calls", Finished("completed")),
    ("function_call", Finished("completed")),
    ("length", Finished("incomplete", incomplete_details={"reason": "max_output_tokens"})),
    ("content_filter", Finished("incomplete", incomplete_details={"reason": "content_filter"})),
    (None, Finished("failed", error=CUT_OFF)),
    (
        "abort",
        Finished(
            "failed",
            error={
                "code": "server_error",
                "message": "The inference server stopped for a reason that is not known here: 'abort'.",
            },
        ),
    ),
]


@pytest.mark.parametrize(("reason", "expected"), ENDS)
@pytest.mark.parametrize("done", [True, False], ids=["done", "stream ends"])
def test_answer_ends_as_the_finish_reason_says(reason: str | None, expected: Finished, done: bool) -> None:
    assert finished(strict([chunk({"content": "Hi"}), chunk({}, reason)], done)) == expected


def test_message_that_ran_out_of_tokens_is_incomplete() -> None:
    assert items_of(chunk({"content": "Hel"}), chunk({}, "length")) == [message("Hel", "incomplete")]


def test_finish_reason_survives_a_null_after_it() -> None:
    assert finished(strict([chunk({"content": "Hi"}, "stop"), chunk({}, None)])).status == "completed"


FULL = {
    "input_tokens": 7,
    "input_tokens_details": {"cache_write_tokens": 0, "cached_tokens": 0},
    "output_tokens": 3,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 10,
}


@pytest.mark.parametrize(
    "payloads",
    [
        [chunk({"content": "Hi"}), STOP, {**chunk(), "choices": [], "usage": USAGE}],
        [chunk({"content": "Hi"}), {**STOP, "usage": USAGE}],
        [{**chunk({"content": "Hi"}), "usage": {"prompt_tokens": 7}}, {**STOP, "usage": USAGE}],
        [chunk({"content": "Hi"}), STOP, {"usage": USAGE, "object": "chat.completion.chunk"}],
        [chunk({"content": "Hi"}), {**STOP, "usage": USAGE}, {**chunk(), "choices": [], "usage": None}],
    ],
    ids=["chunk of its own", "last chunk", "every chunk", "without choices", "null after it"],
)
def test_usage_is_read_wherever_it_stands(payloads: list[Json]) -> None:
    assert finished(strict(payloads)).usage == FULL


@pytest.mark.parametrize(
    "details",
    [
        {"prompt_tokens_details": {"cached_tokens": 4}, "completion_tokens_details": {"reasoning_tokens": 2}},
        {"prompt_cache_hit_tokens": 4, "reasoning_tokens": 2, "prompt_tokens_details": None},
    ],
)
def test_cached_and_reasoning_tokens_are_counted(details: Json) -> None:
    usage = finished(strict([{**STOP, "usage": {**USAGE, **details}}])).usage

    assert usage is not None
    assert usage["input_tokens_details"]["cached_tokens"] == 4
    assert usage["output_tokens_details"]["reasoning_tokens"] == 2


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        ({"error": {"message": "Out of memory.", "type": "server_error", "code": 500}}, "server_error"),
        ({"error": {"message": "Out of memory.", "code": "oom"}}, "oom"),
        ({"error": "Out of memory."}, "server_error"),
        ({"object": "error", "message": "Out of memory.", "code": 500}, "server_error"),
        ({**chunk({"content": ""}, "error"), "error": {"message": "Out of memory."}}, "server_error"),
    ],
)
def test_error_in_the_place_of_a_chunk_is_the_outcome(payload: Json, code: str) -> None:
    events = strict([chunk({"content": "Hel"}), payload, chunk({"content": "lo"}), STOP])

    assert finished(events) == Finished("failed", error={"code": code, "message": "Out of memory."})


def test_choice_of_a_null_index_is_numbered_by_its_place() -> None:
    unnumbered = chunk({"content": "Hi"}, "stop", index=None)

    assert items_of(unnumbered) == [message("Hi")]


def test_choices_other_than_the_first_are_not_read() -> None:
    other = {
        **chunk({"content": "No"}),
        "choices": [{"index": 1, "delta": {"content": "No"}, "finish_reason": "length"}],
    }

    assert items_of(chunk({"content": "Hi"}), other, STOP) == [message("Hi")]


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"type": "response.created", "response": {}},
        {"choices": "x"},
        {"choices": [1]},
        chunk({"content": 1}),
        chunk({"content": [{"type": "text"}]}),
        chunk({"reasoning": {}}),
        chunk({"tool_calls": {"index": 0}}),
        chunk({"tool_calls": [1]}),
        calling({"function": "f"}),
        calling({"function": {"name": 1}}),
        calling({"function": {"arguments": 1}}),
        chunk({}, finish=None, logprobs=[1]),
        {"choices": [{"delta": []}]},
        {"choices": [{"message": "x"}]},
    ],
)
def test_what_is_no_chunk_is_an_upstream_error(payload: Json) -> None:
    with pytest.raises(UpstreamError) as failed:
        strict([payload])
    assert (failed.value.http_status, failed.value.code) == (502, "bad_upstream_response")


@pytest.mark.parametrize("body", [{}, {"choices": []}, {"choices": None}, {"usage": USAGE}, {"object": "response"}])
def test_what_is_no_completion_is_an_upstream_error(body: Json) -> None:
    with pytest.raises(UpstreamError):
        ChatCompletionsReader().read_response(body)


# HTTP errors


@pytest.mark.parametrize(
    ("param", "expected"),
    [
        ("messages", "input"),
        ("messages[3].content", "input"),
        ("messages.0.role", "input"),
        ("max_tokens", "max_output_tokens"),
        ("max_completion_tokens", "max_output_tokens"),
        ("response_format", "text.format"),
        ("response_format.json_schema.schema", "text.format.schema"),
        ("reasoning_effort", "reasoning.effort"),
        ("tools[0].function.parameters", "tools"),
        ("logprobs", "top_logprobs"),
        ("temperature", "temperature"),
        ("max_tokens_per_second", "max_tokens_per_second"),
        (None, None),
    ],
)
def test_refusal_names_the_parameter_that_the_client_sent(param: str | None, expected: str | None) -> None:
    body = {"error": {"message": "No.", "type": "invalid_request_error", "param": param, "code": None}}

    error = ChatCompletionsReader().error(400, {}, encode(body))

    assert isinstance(error, ClientError)
    assert (error.http_status, error.message, error.param) == (400, "No.", expected)


def test_refusal_of_too_many_requests_keeps_its_retry_after() -> None:
    error = ChatCompletionsReader().error(429, {"retry-after": "3"}, b'{"error": {"message": "Slow down."}}')

    assert (error.http_status, error.headers) == (429, {"retry-after": "3"})


# Properties

letters = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
names = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=8, unique=True).map("".join)
saying = st.one_of(
    letters.filter(lambda text: bool(text.strip())).map(lambda text: {"content": text}),
    letters.map(lambda text: {"reasoning_content": text}),
    st.tuples(names, st.dictionaries(letters, st.integers(), max_size=2)).map(
        lambda pair: {"name": pair[0], "arguments": json.dumps(pair[1])}
    ),
)


def cut(text: str, data: st.DataObject) -> list[str]:
    places = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=4)))
    return [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]


def streamed(said: list[Json], data: st.DataObject) -> list[Json]:
    payloads: list[Json] = []
    calls = 0
    for one in said:
        if "name" not in one:
            ((field, text),) = one.items()
            payloads += [chunk({field: piece}) for piece in cut(text, data)]
            continue
        payloads.append(calling(call(calls, f"id{calls}", "")))
        payloads += [calling(call(calls, None, piece)) for piece in cut(one["name"], data)]
        payloads += [calling(call(calls, None, None, piece)) for piece in cut(one["arguments"], data)]
        calls += 1
    return [*payloads, STOP]


@settings(max_examples=100)
@given(said=st.lists(saying, max_size=5), data=st.data())
def test_any_cut_of_the_deltas_gives_the_same_items(said: list[Json], data: st.DataObject) -> None:
    whole: list[Json] = []
    for index, one in enumerate(said):
        before = said[index - 1] if index else {}
        if "name" in one:
            whole.append(function_call("", one["arguments"], one["name"]))
        elif "name" not in before and before.keys() == one.keys():
            assume(False)
        else:
            whole.append(message(one["content"]) if "content" in one else reasoning(one["reasoning_content"]))
    calls = iter(range(len(said)))
    expected = [{**item, "call_id": f"id{next(calls)}"} if "call_id" in item else item for item in whole]

    assert items_of(*streamed(said, data)) == expected


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


def objects(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({}, optional={name: anything | value for name, value in fields.items()})


text = st.text(max_size=4)
entries = objects(index=st.integers(0, 2), id=text, function=objects(name=text, arguments=text))
deltas = objects(
    content=text, reasoning=text, reasoning_content=text, refusal=text, tool_calls=st.lists(entries, max_size=3),
    function_call=objects(name=text, arguments=text), annotations=st.lists(objects(url_citation=objects(url=text))),
)  # fmt: skip
probabilities = objects(content=st.lists(objects(token=text, logprob=st.floats(-5, 0), top_logprobs=st.none())))
choices = objects(
    index=st.integers(0, 1), delta=deltas, message=deltas, finish_reason=st.sampled_from(["stop", "length", "x"]),
    logprobs=probabilities,
)  # fmt: skip
chunks = objects(choices=st.lists(choices, max_size=2), usage=objects(prompt_tokens=st.integers()), error=anything)


@settings(max_examples=300)
@given(payloads=st.lists(chunks, max_size=6))
def test_any_chunks_are_a_valid_stream_or_an_upstream_error(payloads: list[Json]) -> None:
    try:
        strict(payloads)
    except UpstreamError:
        return


@settings(max_examples=200)
@given(data=st.binary(max_size=20) | anything.map(encode))
def test_any_data_is_read_or_an_upstream_error(data: bytes) -> None:
    try:
        accumulated(ChatCompletionsReader().read_data(data), new_accumulator())
    except UpstreamError:
        return
