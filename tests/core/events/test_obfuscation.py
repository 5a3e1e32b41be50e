from __future__ import annotations

import string
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attache_core.events.model_events import Delta, Finished, ItemAdded, ItemDone, ItemEvent
from attache_core.events.obfuscation import BLOCK, Obfuscation, wants_obfuscation
from attache_core.events.sequencer import Sequencer
from attache_core.json_codec import Json
from core.events.canonical_stream import check_stream
from core.events.pipeline import client_events, counted_ids, in_progress_response
from core.events.recordings import Recorded, all_recorded

OPENAI = [pytest.param(answer, id=answer.name) for answer in all_recorded(stream=True, openai=True)]


@settings(max_examples=50)
@given(st.lists(st.text(max_size=40), max_size=200))
def test_delta_with_its_padding_is_a_multiple_of_the_block(deltas: list[str]) -> None:
    obfuscation = Obfuscation()
    for delta in deltas:
        padding = obfuscation.padding(delta)
        assert len(padding) < BLOCK
        assert (len(delta) + len(padding)) % BLOCK == 0
        assert set(padding) <= set(string.ascii_letters + string.digits)


def test_padding_is_random_and_never_repeated() -> None:
    obfuscation, other = Obfuscation(), Obfuscation()
    paddings = [one.padding("x") for one in (obfuscation, other) for _ in range(500)]
    assert len(set(paddings)) == len(paddings)


@pytest.mark.parametrize("answer", OPENAI)
def test_openai_pads_what_has_a_delta_and_to_the_same_length(answer: Recorded) -> None:
    for payload in answer.payloads:
        assert ("obfuscation" in payload) == ("delta" in payload)
        if "delta" in payload:
            assert len(payload["obfuscation"]) == len(Obfuscation().padding(payload["delta"]))


@pytest.mark.parametrize("padded", [False, True])
def test_every_event_with_a_delta_is_padded_or_none_is(padded: bool) -> None:
    item = {"type": "mcp_call", "status": "in_progress", "arguments": "", "name": "n", "server_label": "s"}
    arguments = "response.mcp_call_arguments"
    sequencer = Sequencer(in_progress_response(), make_id=counted_ids(), obfuscation=Obfuscation() if padded else None)
    events = [
        made
        for said in (
            ItemAdded("m", item),
            ItemEvent("m", f"{arguments}.delta", {"delta": "{}"}),
            ItemEvent("m", f"{arguments}.done", {"arguments": "{}"}),
            ItemDone("m", {**item, "status": "completed", "arguments": "{}"}),
            ItemAdded("c", {"type": "custom_tool_call", "call_id": "c", "name": "n", "input": ""}),
            Delta("c", None, "input", "x" * 17),
            ItemDone("c", {"type": "custom_tool_call", "call_id": "c", "name": "n", "input": "x" * 17}),
        )
        for made in sequencer.emit(said)
    ]
    events += sequencer.finish(Finished("completed"), completed_at=1)
    check_stream(events)
    lengths = [len(event.data["obfuscation"]) for event in events if "obfuscation" in event.data]
    assert lengths == ([14, 15] if padded else [])
    assert [list(event.data) for event in events if event.type == f"{arguments}.delta"] == [
        ["type", "delta", "item_id", *(["obfuscation"] if padded else []), "output_index", "sequence_number"]
    ]


def test_fields_of_a_padded_text_delta_are_in_openais_order() -> None:
    (answer,) = (one for one in all_recorded(stream=True) if one.name.startswith("text/resp-single-gpt-4o"))
    (sent, *_) = (payload for payload in answer.payloads if "delta" in payload)
    sequencer = Sequencer(in_progress_response(), make_id=counted_ids(), obfuscation=Obfuscation())
    message: Json = {"type": "message", "role": "assistant", "status": "completed"}
    body = {"type": "output_text", "text": "Hi", "annotations": [], "logprobs": []}
    made = [event.data for event in sequencer.emit(ItemDone("m", {**message, "content": [body]}))]
    assert [list(data) for data in made if "delta" in data] == [list(sent)]


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ({"stream": True}, True),
        ({"stream": True, "stream_options": None}, True),
        ({"stream": True, "stream_options": {}}, True),
        ({"stream": True, "stream_options": {"include_obfuscation": None}}, True),
        ({"stream": True, "stream_options": {"include_obfuscation": True}}, True),
        ({"stream": True, "stream_options": {"include_obfuscation": False}}, False),
        ({"stream": False}, False),
        ({}, False),
    ],
)
def test_stream_is_padded_unless_the_request_says_no(body: dict[str, Any], wanted: bool) -> None:
    assert wants_obfuscation(body) is wanted


def test_what_another_gateway_padded_is_read_as_what_it_says() -> None:
    (answer,) = (one for one in all_recorded(stream=True) if one.name.startswith("text/resp-single-gpt-4o"))
    bare = [{name: value for name, value in one.items() if name != "obfuscation"} for one in answer.payloads]
    assert client_events(answer.payloads) == client_events(bare)
