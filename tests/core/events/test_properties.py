"""Any bytes and any payloads in any order: one valid stream, or an UpstreamError, and nothing else."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from attache_core import json_codec
from attache_core.errors import UpstreamError
from attache_core.events.dialects import CanonicalReader, Dialect, dialect_for
from attache_core.json_codec import Json
from core.events.canonical_stream import check_stream
from core.events.pipeline import accumulated, client_events, new_accumulator, read_stream, sequenced
from core.events.recordings import recorded

PATHS = (
    "text/resp-single-gpt-4o-streaming.yaml",
    "reasoning/reasoning-single-openai-gpt-oss-20b-streaming.yaml",
    "function_tools/tool-call-required-Qwen-Qwen3-30B-A3B-FP8-streaming.yaml",
    "function_tools_multi_turn/responses_tool_calls_3turn_streaming.yaml",
    "custom_tools/codex-direct-vllm-http-custom-tool-Qwen-Qwen3.6-35B-A3B-streaming.yaml",
    "llama_cpp/text-gemma3-270m-streaming.yaml",
    "errors/context_length_exceeded-stream.yaml",
    "mcp/mcp-openai-reference-counter-sum-missing-argument-gpt-4o-streaming.yaml",
    "web_search/builtin-tool-web_search-stream.yaml",
)


def thinned(payloads: list[Json]) -> list[Json]:
    """Of a run of equal types, the first two."""
    return [
        payload
        for at, payload in enumerate(payloads)
        if at < 2 or payload["type"] != payloads[at - 1]["type"] or payload["type"] != payloads[at - 2]["type"]
    ]


PAYLOADS = [payload for path in PATHS for payload in thinned(recorded(path)[0].payloads)]
BOOLEANS: st.SearchStrategy[bool] = st.booleans()
NOISE: list[Any] = [None, "", "x", 0, 7, -1, True, [], {}, [{}], [1], {"type": "message"}, "\ud83d", 2**70]


@st.composite
def damaged(draw: st.DrawFn) -> Json:
    """A recorded payload, perhaps with a field, or a field of its item or part, replaced or removed."""
    payload = copy.deepcopy(draw(st.sampled_from(PAYLOADS)))
    if draw(BOOLEANS):
        target = payload
        inner = [value for value in payload.values() if isinstance(value, dict)]
        descend = draw(BOOLEANS)
        if inner and descend:
            target = inner[0]
        name: str = draw(st.sampled_from(sorted(target)))
        if draw(BOOLEANS):
            del target[name]
        else:
            target[name] = copy.deepcopy(draw(st.sampled_from(NOISE)))
    return payload


READERS = st.sampled_from([lambda: dialect_for("auto"), lambda: dialect_for("openai"), CanonicalReader])


def check(said: Any) -> None:
    try:
        events = sequenced(said())
    except UpstreamError:
        return
    # Whether its types fit the `openai` package is up to the server where an item is passed on as it is.
    check_stream(events, joins="anyhow", openai_types=False)


@settings(max_examples=150, deadline=None)
@given(st.lists(damaged(), max_size=12), READERS)
def test_any_payloads_in_any_order_give_a_valid_stream_or_an_upstream_error(payloads: list[Json], reader: Any) -> None:
    def said() -> list[Any]:
        dialect: Dialect = reader()
        return accumulated([event for payload in payloads for event in dialect.read(payload)])

    check(said)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(PAYLOADS), max_size=14))
def test_any_intact_payloads_in_any_order_give_a_stream_that_openai_knows(payloads: list[Json]) -> None:
    try:
        events = client_events(payloads)
    except UpstreamError:
        return
    check_stream(events, joins="anyhow")


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_bytes_give_a_valid_stream_or_an_upstream_error(data: st.DataObject) -> None:
    stream = bytearray(b"".join(b"data: " + json_codec.encode(data.draw(damaged())) + b"\n\n" for _ in range(3)))
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(stream)))
        stream[at : at + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=6))
    cut = data.draw(st.integers(0, len(stream)))
    check(lambda: accumulated(read_stream([bytes(stream[:cut]), bytes(stream[cut:])])))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from([payload["item"] for payload in PAYLOADS if payload["type"].endswith("item.done")])))
def test_any_items_streamed_whole_are_the_items_of_a_plain_answer(items: list[Json]) -> None:
    plain, streamed = new_accumulator(), new_accumulator()
    accumulated(dialect_for("auto").read_response({"status": "completed", "output": items}), plain)
    payloads: list[Json] = [
        {"type": "response.output_item.done", "output_index": at, "item": {**item, "id": f"item{at}", "item_id": None}}
        for at, item in enumerate(items)
    ]
    dialect = dialect_for("auto")
    payloads.append({"type": "response.completed", "response": {"status": "completed", "output": []}})
    accumulated([said for payload in payloads for said in dialect.read(payload)], streamed)
    assert [item for _, item in streamed.items] == [item for _, item in plain.items]
