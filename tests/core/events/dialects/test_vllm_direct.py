"""vLLM's other front end, that of the `direct-vllm` recordings: one oddity a test.

| what it does | test |
| --- | --- |
| ids are UUIDs, the same in the stream and at its end: dropped all the same | `…ids_of_the_stream_and_its_end…` |
| `[DONE]` ends the stream | `…end_mark…` |
| no `reasoning_part` events | `…reasoning_without_part_events…` |
| the first delta of arguments is `{}` and not part of them | `…bogus…`, `…keeps_its_empty_object` |
| deltas of arguments have a `content_index` | `…bogus…` |
| a custom tool's call has no input events | `…custom_call…` |
| a message of white space between reasoning and a call | `…whitespace_message…` |
"""

from __future__ import annotations

from typing import get_args

import pytest

from attache_core.events.dialects import DialectName, dialect_for
from core.events.canonical_stream import check_stream
from core.events.dialects.payloads import CREATED, built, call, call_stream, completed
from core.events.pipeline import client_events, read_stream
from core.events.recordings import recorded

CUSTOM = "custom_tools/codex-direct-vllm-http-custom-tool-Qwen-Qwen3.6-35B-A3B-streaming.yaml"
UPSTREAMS = pytest.mark.parametrize("name", get_args(DialectName))
AS_VLLM = pytest.mark.parametrize("name", ["auto", "vllm"])


@pytest.mark.parametrize("name", ["auto", "vllm"])
def test_first_argument_delta_that_is_bogus_is_not_shown(name: DialectName) -> None:
    payloads = [CREATED, *call_stream("{}", '{"a"', ":1}", done='{"a":1}'), completed()]
    events = client_events(payloads, dialect_for(name))
    check_stream(events)
    assert [event.data["delta"] for event in events if event.type.endswith(".delta")] == ['{"a"', ":1}"]


@pytest.mark.parametrize("name", ["auto", "vllm"])
def test_recorded_bogus_argument_delta_is_not_shown(name: DialectName) -> None:
    answer = recorded("namespace_tools/codex-direct-vllm-http-flat-namespace-tool-Qwen-Qwen3.6-35B-A3B-streaming.yaml")[
        0
    ]
    deltas = [payload["delta"] for payload in answer.payloads if "arguments.delta" in payload["type"]]
    assert deltas[0] == "{}"
    check_stream(client_events(answer.payloads, dialect_for(name)))


def test_custom_call_without_input_events_streams_its_input() -> None:
    answer = recorded("custom_tools/codex-direct-vllm-http-custom-tool-Qwen-Qwen3.6-35B-A3B-streaming.yaml")[0]
    events = client_events(answer.payloads)
    check_stream(events)
    shown = [event for event in events if "custom_tool_call_input" in event.type]
    assert [(event.type, event.data.get("delta"), event.data.get("input")) for event in shown] == [
        ("response.custom_tool_call_input.delta", "CUSTOM_CASSETTE_OK", None),
        ("response.custom_tool_call_input.done", None, "CUSTOM_CASSETTE_OK"),
    ]


def test_whitespace_message_before_a_recorded_call_is_not_shown() -> None:
    answer = recorded("custom_tools/codex-direct-vllm-http-custom-tool-Qwen-Qwen3.6-35B-A3B-streaming.yaml")[0]
    assert [item["type"] for item in answer.payloads[-1]["response"]["output"]] == [
        "reasoning", "message", "custom_tool_call",
    ]  # fmt: skip
    assert [item["type"] for item in built(answer.payloads)] == ["reasoning", "custom_tool_call"]


@UPSTREAMS
def test_call_without_arguments_keeps_its_empty_object(name: DialectName) -> None:
    payloads = [CREATED, *call_stream("{}", done="{}"), completed()]
    events = client_events(payloads, dialect_for(name))
    check_stream(events)
    assert events[-1].data["response"]["output"] == [{"id": "function_call_0", **call("{}")}]
    unfinished = [payload for payload in payloads if "done" not in payload["type"]]
    assert built(unfinished, name) == [call("{}")]


@AS_VLLM
def test_ids_of_the_stream_and_its_end_are_dropped_though_they_agree(name: DialectName) -> None:
    answer = recorded(CUSTOM)[0]
    streamed = [payload["item"]["id"] for payload in answer.payloads if payload["type"].endswith("item.done")]
    assert [item["id"] for item in answer.payloads[-1]["response"]["output"]] == streamed
    events = client_events(answer.payloads, dialect_for(name))
    assert [item["id"] for item in events[-1].data["response"]["output"]] == ["reasoning_0", "custom_tool_call_1"]


@UPSTREAMS
def test_end_mark_says_nothing(name: DialectName) -> None:
    answer = recorded(CUSTOM)[0]
    assert answer.stream is not None
    assert answer.stream.endswith(b"data: [DONE]\n\n")
    without = answer.stream.removesuffix(b"data: [DONE]\n\n")
    assert read_stream([answer.stream], dialect_for(name)) == read_stream([without], dialect_for(name))


@AS_VLLM
def test_reasoning_without_part_events_has_one_part(name: DialectName) -> None:
    answer = recorded(CUSTOM)[1]
    assert not [payload for payload in answer.payloads if "reasoning_part" in payload["type"]]
    events = client_events(answer.payloads, dialect_for(name))
    check_stream(events)
    added = [event.data["part"]["type"] for event in events if event.type == "response.content_part.added"]
    assert added == ["reasoning_text", "output_text"]
