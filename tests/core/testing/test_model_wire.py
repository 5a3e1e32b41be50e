"""Scripted answers have the shape of recorded ones, event for event, oddities included."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from attache_core.json_codec import Json, decode
from attache_core.testing.model_script import (
    Dialect,
    FunctionCall,
    Item,
    Message,
    Reasoning,
    Said,
    call,
    function_calls,
    incomplete,
    says,
    stream_error,
    text,
    thinks,
)
from attache_core.testing.model_wire import wire_for

RECORDINGS = Path(__file__).parents[2] / "cassettes"

STREAMED: list[tuple[Dialect, str]] = [
    ("vllm", "reasoning/reasoning-single-Qwen-Qwen3-30B-A3B-FP8-streaming.yaml"),
    ("vllm", "function_tools/tool-call-required-Qwen-Qwen3-30B-A3B-FP8-streaming.yaml"),
    ("vllm_harmony", "reasoning/reasoning-single-openai-gpt-oss-20b-streaming.yaml"),
    ("vllm_harmony", "function_tools_multi_turn/responses_tool_calls_3turn_streaming.yaml"),
    ("openai", "text/resp-single-gpt-4o-streaming.yaml"),
    ("llama_cpp", "llama_cpp/text-gemma3-270m-streaming.yaml"),
    ("vllm_direct", "namespace_tools/codex-direct-vllm-http-flat-namespace-tool-Qwen-Qwen3.6-35B-A3B-streaming.yaml"),
    ("sglang", "sglang/sglang-tool-call-auto-Qwen-Qwen3-8B-streaming.yaml"),
    ("sglang", "sglang/sglang-stateful-Qwen-Qwen3-8B-streaming.yaml"),
]
PLAIN: list[tuple[Dialect, str]] = [
    ("vllm", "reasoning/reasoning-single-Qwen-Qwen3-30B-A3B-FP8-nonstreaming.yaml"),
    ("llama_cpp", "llama_cpp/text-gemma3-270m-nonstreaming.yaml"),
]
DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
STREAM_ALL = tuple(dialect for dialect in DIALECTS if dialect != "sglang_harmony")
"""Those that stream every item; SGLang with gpt-oss streams no calls."""


def recorded_turn(name: str) -> tuple[Json, Json]:
    """The create request and the response of the first turn of a recording."""
    turn = yaml.safe_load((RECORDINGS / name).read_text())
    turn = turn.get("turns", [turn])[0]
    return turn["request"]["body"], turn["response"]


def recorded_events(response: Json) -> list[Json]:
    lines = (line for line in response["sse"] if line.startswith("data: ") and "[DONE]" not in line)
    return [decode(line[6:]) for line in lines]


def same_items(output: list[Json]) -> Said:
    """A script that says what a recorded response holds."""
    items: list[Item] = []
    for item in output:
        match item["type"]:
            case "message":
                items.append(Message((item["content"][0]["text"],)))
            case "reasoning":
                items.append(Reasoning((item["content"][0]["text"],)))
            case "function_call":
                items.append(FunctionCall(item["name"], item["arguments"]))
    return Said(tuple(items))


def shape(value: Any) -> Any:
    """A value with every scalar replaced by its type."""
    match value:
        case dict():
            return {key: shape(inner) for key, inner in value.items()}
        case list():
            return [shape(inner) for inner in value]
        case bool() | None:
            return value
        case int() | float():
            return "number"
        case _:
            return type(value).__name__


def without_repeats(events: list[Json]) -> list[Any]:
    """The shapes of events, runs of the same one (the deltas) taken as one."""
    return [event for event, _ in itertools.groupby(shape(event) | {"type": event["type"]} for event in events)]


@pytest.mark.parametrize(("dialect", "name"), STREAMED)
def test_scripted_stream_with_recorded_items_has_recorded_shape(dialect: Dialect, name: str) -> None:
    request, response = recorded_turn(name)
    expected = recorded_events(response)
    scripted = wire_for(dialect, request, same_items(expected[-1]["response"]["output"])).events()
    assert without_repeats(_comparable(scripted, request)) == without_repeats(_comparable(expected, request))


@pytest.mark.parametrize(("dialect", "name"), PLAIN)
def test_scripted_answer_with_recorded_items_has_recorded_shape(dialect: Dialect, name: str) -> None:
    request, response = recorded_turn(name)
    scripted = wire_for(dialect, request, same_items(response["body"]["output"])).response()
    assert shape(scripted) == shape(response["body"])


def test_openai_reasoning_and_call_has_recorded_event_types() -> None:
    request, response = recorded_turn("reasoning/tool-function-stream.yaml")
    expected = recorded_events(response)
    said = Said((Reasoning(("Thinking.",)), FunctionCall("get_account_number", "{}")))
    scripted = wire_for("openai", request, said).events()
    types = [[kind for kind, _ in itertools.groupby(event["type"] for event in told)] for told in (scripted, expected)]
    assert types[0] == types[1]


def _comparable(events: list[Json], request: Json) -> list[Json]:
    """Events without what the account or the model decides: echoed tools, cache retention."""
    varying = {"tools", "prompt_cache_retention", *(("text",) if "tools" in request else ())}
    return [
        {**event, "response": {key: value for key, value in event["response"].items() if key not in varying}}
        if "response" in event
        else event
        for event in events
    ]


def test_vllm_stream_ids_differ_from_final_ids() -> None:
    events = wire_for("vllm", {"input": "x"}, _said(says("Hello.", call("f", {"a": 1})))).events()
    streamed = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    final = events[-1]["response"]["output"]
    assert [item["id"] for item in final] != [item["id"] for item in streamed]
    assert final[1]["call_id"] != streamed[1]["call_id"]
    assert (streamed[1]["arguments"], final[1]["arguments"]) == ('{ "a": 1} ', '{"a": 1}')


def test_call_with_scripted_call_id_keeps_it_in_stream_and_end() -> None:
    for dialect in DIALECTS:
        reply = function_calls(call("f", {}, call_id="call_fixed"))
        events = wire_for(dialect, {"input": "x"}, _said(reply)).events()
        ids = {event["item"]["call_id"] for event in events if "item" in event}
        assert ids | {events[-1]["response"]["output"][0]["call_id"]} == {"call_fixed"}


def test_vllm_without_tools_answers_tool_choice_none() -> None:
    assert wire_for("vllm", {"input": "x"}, _said(text("x"))).response()["tool_choice"] == "none"


def test_vllm_with_forced_tool_leaks_its_schema_into_text() -> None:
    tool = {"type": "function", "name": "f", "parameters": {"type": "object"}}
    request = {"input": "x", "tools": [tool], "tool_choice": "required"}
    response = wire_for("vllm", request, _said(function_calls(call("f", {})))).response()
    assert response["text"]["format"]["name"] == "tool_calling_response"
    assert response["tools"] == [{**tool, "strict": None, "defer_loading": None, "description": None}]


def test_vllm_incomplete_ends_with_completed_event_that_carries_incomplete_response() -> None:
    last = wire_for("vllm", {"input": "x"}, _said(incomplete())).events()[-1]
    assert (last["type"], last["response"]["status"]) == ("response.completed", "incomplete")
    assert last["response"]["incomplete_details"] == {"reason": "max_output_tokens"}


def test_openai_incomplete_ends_with_incomplete_event() -> None:
    last = wire_for("openai", {"input": "x"}, _said(incomplete("content_filter"))).events()[-1]
    assert (last["type"], last["response"]["status"]) == ("response.incomplete", "incomplete")
    assert last["response"]["incomplete_details"] == {"reason": "content_filter"}


def test_direct_vllm_begins_arguments_with_an_empty_object_and_ends_its_stream_with_a_mark() -> None:
    wire = wire_for("vllm_direct", {"input": "x"}, _said(function_calls(call("f", {"a": 1}))))
    deltas = [event["delta"] for event in wire.events() if "arguments.delta" in event["type"]]
    assert deltas == ["{}", '{"a": 1}']
    assert wire.frames()[-1].endswith(b"\n\ndata: [DONE]\n\n")


def test_sglang_with_gpt_oss_has_one_id_and_no_streamed_calls() -> None:
    said = _said(says(thinks("Hm."), "Hello.", call("f", {"a": 1})))
    events = wire_for("sglang_harmony", {"input": "x"}, said).events()
    assert len({event["item_id"] for event in events if "item_id" in event}) == 1
    items = [event for event in events if "output_item" in event["type"]]
    assert [(event["item"]["type"], event["output_index"]) for event in items] == [
        ("reasoning", 1), ("reasoning", 2), ("message", 2), ("message", 3),
    ]  # fmt: skip
    assert [item["type"] for item in events[-1]["response"]["output"]] == ["reasoning", "message", "function_call"]


def test_llama_cpp_incomplete_raises_value_error() -> None:
    with pytest.raises(ValueError, match="no way to say"):
        wire_for("llama_cpp", {"input": "x"}, _said(incomplete()))


@pytest.mark.parametrize(
    ("form", "types"),
    [
        ("both", ["error", "response.failed"]),
        ("error", ["error"]),
        ("failed", ["response.failed"]),
    ],
)
def test_stream_error_ends_stream_in_its_form(form: Any, types: list[str]) -> None:
    reply = stream_error("Too long.", code="context_length_exceeded", http_status=400, form=form)
    events = wire_for("openai", {"input": "x"}, _said(reply)).events()
    assert [event["type"] for event in events] == ["response.created", "response.in_progress", *types]


def test_openai_stream_error_has_recorded_objects() -> None:
    reply = stream_error("Too long.", code="context_length_exceeded", http_status=400)
    error, failed = wire_for("openai", {"input": "x"}, _said(reply)).events()[-2:]
    assert error["error"] == {
        "type": "invalid_request_error",
        "code": "context_length_exceeded",
        "message": "Too long.",
        "param": None,
    }
    assert failed["response"]["error"] == {"code": "context_length_exceeded", "message": "Too long."}


pieces = st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=4).map(tuple)
items = st.one_of(
    pieces.map(Message),
    pieces.map(Reasoning),
    st.builds(call, st.just("f"), st.dictionaries(st.text(max_size=4), st.integers(), max_size=2)),
)


@settings(max_examples=50)
@given(said=st.lists(items, max_size=4).map(lambda given: Said(tuple(given))), dialect=st.sampled_from(STREAM_ALL))
def test_any_items_are_the_same_streamed_and_plain(said: Said, dialect: Dialect) -> None:
    wire = wire_for(dialect, {"input": "x"}, said)
    events = wire.events()
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert [_content(item) for item in done] == [_content(item) for item in wire.response()["output"]]
    assert events[-1]["response"]["output"] == wire.response()["output"]
    joined = "".join(event["delta"] for event in events if event["type"].endswith("text.delta"))
    assert joined == "".join(item.text for item in said.items if not isinstance(item, FunctionCall))


def _content(item: Json) -> Json:
    """An item without what vLLM changes between its stream and its end."""
    arguments = {"arguments": decode(item["arguments"])} if "arguments" in item else {}
    kept = {key: item[key] for key in ("type", "name", "role", "content", "summary") if item.get(key)}
    return {**kept, **arguments}


def _said(reply: Any) -> Said:
    said = reply.content
    assert isinstance(said, Said)
    return said
