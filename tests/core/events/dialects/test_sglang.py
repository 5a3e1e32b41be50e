"""SGLang's server: one oddity a test. Without Harmony, recordings show them; with it, its published code does.

| what it does | test |
| --- | --- |
| gpt-oss: one id for all items, indexes from 1, an item ends with the next one's | `…one_id_for_all_items…` |
| gpt-oss: the part of reasoning is announced as `output_text` | `…part_of_reasoning…` |
| gpt-oss: calls are in the final response alone | `…calls_that_are_not_streamed…` |
| no `reasoning_part` events | `…recorded_stream…` |
| a message of white space between reasoning and a call | `…recorded_stream…` |
| `tools` are not echoed in a stream; `created_at` is a float | `…settings…` |
| plain usage has the names of Chat Completions (earlier versions) | `…usage…` |
| the router ends no item, and its final object has other items | `…router…` |
| errors without `error` around them, or with an integer code | `test_http_error.py` |
"""

from __future__ import annotations

import pytest

from attache_core.events.dialects import DialectName, dialect_for
from attache_core.events.model_events import Finished
from attache_core.json_codec import Json
from attache_core.testing.model_script import Said, says, thinks
from attache_core.testing.model_script import call as scripted_call
from attache_core.testing.model_wire import wire_for
from core.events.canonical_stream import check_stream
from core.events.dialects.payloads import CREATED, built, call, call_stream, completed, message
from core.events.pipeline import client_events, in_progress_response, read_payloads
from core.events.recordings import recorded

AS_SGLANG = pytest.mark.parametrize("name", ["auto", "sglang"])
RECORDED = "sglang/sglang-tool-call-auto-Qwen-Qwen3-8B-streaming.yaml"


def harmony(*items: object) -> list[Json]:
    """The payloads of a stream of SGLang with gpt-oss."""
    said = says(*items).content  # type: ignore[arg-type] # items of a script, or texts
    assert isinstance(said, Said)
    return wire_for("sglang_harmony", {"input": "x"}, said).events()


def reasoning(text: str) -> Json:
    return {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": text}]}


@AS_SGLANG
def test_one_id_for_all_items_and_ends_with_the_next_index_give_each_item_once(name: DialectName) -> None:
    payloads = harmony(thinks("Let me see."), "Well, hello.", thinks("Hm, again."), "Bye now.")
    places = [
        (payload["type"].rpartition(".")[2], payload["output_index"], payload["item"]["id"][:3])
        for payload in payloads
        if "output_item" in payload["type"]
    ]
    assert places[:4] == [("added", 1, "ite"), ("done", 2, "rs_"), ("added", 2, "ite"), ("done", 3, "ite")]
    check_stream(client_events(payloads, dialect_for(name)))
    assert built(payloads, name) == [
        reasoning("Let me see."), message("Well, hello."), reasoning("Hm, again."), message("Bye now."),
    ]  # fmt: skip


@AS_SGLANG
def test_part_of_reasoning_that_is_announced_as_text_opens_no_message(name: DialectName) -> None:
    payloads = harmony(thinks("Let me see."))
    kinds = [payload["part"]["type"] for payload in payloads if payload["type"] == "response.content_part.added"]
    assert kinds == ["output_text"]
    events = client_events(payloads, dialect_for(name))
    check_stream(events)
    assert built(payloads, name) == [reasoning("Let me see.")]


@AS_SGLANG
def test_calls_that_are_not_streamed_are_those_of_the_final_response(name: DialectName) -> None:
    payloads = harmony(
        thinks("Look."), scripted_call("look", '{"a":1}', call_id="a"), scripted_call("look", "{}", call_id="b")
    )
    assert not [payload for payload in payloads if "function_call" in payload["type"]]
    check_stream(client_events(payloads, dialect_for(name)))
    assert built(payloads, name) == [reasoning("Look."), call('{"a":1}', call_id="a"), call("{}", call_id="b")]


@AS_SGLANG
def test_recorded_stream_of_reasoning_white_space_and_a_call_is_reasoning_and_a_call(name: DialectName) -> None:
    (answer,) = recorded(RECORDED)
    assert not [payload for payload in answer.payloads if "reasoning_part" in payload["type"]]
    check_stream(client_events(answer.payloads, dialect_for(name)))
    assert built(answer.payloads, name) == [
        reasoning("\nOkay, the user is asking"),
        call('{"ticker": "NVDA", "currency": "USD"}', name="get_stock_price", call_id="recorded_4"),
    ]


@AS_SGLANG
def test_settings_of_the_servers_response_are_not_shown(name: DialectName) -> None:
    (answer,) = recorded(RECORDED)
    assert (answer.payloads[0]["response"]["tools"], answer.payloads[0]["response"]["created_at"]) == ([], 0.0)
    opened = client_events(answer.payloads, dialect_for(name))[0].data["response"]
    assert (set(opened), opened["created_at"]) == (set(in_progress_response()), 1_800_000_000)


USAGE: Json = {
    "input_tokens": 10,
    "input_tokens_details": {"cache_write_tokens": 0, "cached_tokens": 4},
    "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 3},
    "total_tokens": 17,
}
CHAT_USAGE: Json = {
    "prompt_tokens": 10,
    "prompt_tokens_details": {"cached_tokens": 4},
    "completion_tokens": 7,
    "reasoning_tokens": 3,
    "total_tokens": 17,
}


@AS_SGLANG
@pytest.mark.parametrize("usage", [USAGE, CHAT_USAGE], ids=["api", "chat"])
def test_usage_is_whole_under_either_names(name: DialectName, usage: Json) -> None:
    payloads = [CREATED, completed(message("hi"), usage=usage)]
    assert read_payloads(payloads, dialect_for(name))[-1] == Finished("completed", usage=USAGE)


@AS_SGLANG
def test_usage_of_chat_without_details_has_zeros(name: DialectName) -> None:
    (finished,) = read_payloads([completed(usage={"prompt_tokens": 1, "completion_tokens": None})], dialect_for(name))
    assert isinstance(finished, Finished)
    assert (finished.usage or {})["total_tokens"] == 1


@AS_SGLANG
def test_item_that_the_router_never_ends_is_complete_with_the_response(name: DialectName) -> None:
    other = {"id": "msg_x", "type": "message", "role": "assistant", "content": [{"type": "text", "text": ""}]}
    payloads = [CREATED, *call_stream('{"a"', ":1}", done='{"a":1}')[:-1], completed(other)]
    check_stream(client_events(payloads, dialect_for(name)))
    assert built(payloads, name) == [call('{"a":1}')]
