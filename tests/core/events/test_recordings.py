"""Every recorded stream and answer, through all stages."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest

from attache_core.events.dialects import CanonicalReader, DialectName, dialect_for
from attache_core.events.event import Event
from attache_core.events.sse import encode_event
from attache_core.json_codec import Json
from core.events.canonical_stream import check_stream
from core.events.pipeline import accumulated, client_events, new_accumulator, read_stream, sequenced
from core.events.recordings import Recorded, all_recorded, is_openai, recorded

STREAMS = [pytest.param(answer, id=answer.name) for answer in all_recorded(stream=True)]
OPENAI_STREAMS = [pytest.param(answer, id=answer.name) for answer in all_recorded(stream=True, openai=True)]
ANSWERS = [pytest.param(answer, id=answer.name) for answer in all_recorded(stream=False) if answer.status == 200]


def dialects_of(answer: Recorded) -> list[DialectName]:
    if answer.name.startswith("llama_cpp/"):
        return ["auto", "llama_cpp"]
    return ["auto", "openai"] if is_openai(answer.name) else ["auto", "vllm"]


@pytest.mark.parametrize("answer", STREAMS)
def test_recorded_stream_gives_one_valid_stream(answer: Recorded) -> None:
    assert answer.stream is not None
    streams = [sequenced(accumulated(read_stream([answer.stream], dialect_for(name)))) for name in dialects_of(answer)]
    for events in streams:
        check_stream(events)
    assert all(events == streams[0] for events in streams), "the named dialect reads what the tolerant one reads"


@pytest.mark.parametrize("answer", OPENAI_STREAMS)
def test_openai_stream_comes_out_as_openai_sent_it(answer: Recorded) -> None:
    # `error` is not repeated: the terminal event that follows it says the same.
    sent = [payload for payload in answer.payloads if payload["type"] != "error"]
    made = [event.data for event in client_events(answer.payloads, dialect_for("openai"))]
    assert [comparable(payload) for payload in made] == [comparable(payload) for payload in sent]


@pytest.mark.parametrize("answer", OPENAI_STREAMS)
def test_canonical_stream_read_back_and_sequenced_again_is_unchanged(answer: Recorded) -> None:
    first = client_events(answer.payloads, dialect_for("openai"))
    again = client_events([event.data for event in first], CanonicalReader())
    assert again == first


@pytest.mark.parametrize("answer", STREAMS)
def test_recorded_stream_cut_anywhere_gives_the_same_events(answer: Recorded) -> None:
    assert answer.stream is not None
    whole = read_stream([answer.stream])
    generator = random.Random(answer.name)
    for _ in range(2):
        cuts = sorted(generator.sample(range(len(answer.stream)), 40))
        chunks = [answer.stream[start:end] for start, end in zip([0, *cuts], [*cuts, None], strict=True)]
        assert read_stream(chunks) == whole


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
def test_small_stream_cut_at_every_byte_gives_the_same_events(line_end: bytes) -> None:
    (answer,) = recorded("text/resp-single-gpt-4o-streaming.yaml")
    assert answer.stream is not None
    stream = answer.stream.replace(b"\n", line_end)
    whole = read_stream([answer.stream])
    assert read_stream(stream[at : at + 1] for at in range(len(stream))) == whole
    for cut in range(len(stream)):
        if cut % 7 == 0 or stream[cut : cut + 1] in b"\r\n":
            assert read_stream([stream[:cut], stream[cut:]]) == whole


@pytest.mark.parametrize("answer", ANSWERS)
def test_recorded_answer_streamed_to_a_client_is_a_valid_stream(answer: Recorded) -> None:
    assert answer.body is not None
    events = sequenced(accumulated(dialect_for("auto").read_response(answer.body)))
    check_stream(events)
    assert [item["type"] for item in events[-1].data["response"]["output"]] == [
        item["type"] for item in answer.body["output"]
    ]


@pytest.mark.parametrize("answer", STREAMS)
def test_streamed_and_plain_answer_build_the_same_items(answer: Recorded) -> None:
    assert answer.stream is not None
    streamed = new_accumulator()
    accumulated(read_stream([answer.stream]), streamed)
    body = {"output": [item for _, item in streamed.items], "status": "completed"}
    plain = new_accumulator()
    accumulated(dialect_for("auto").read_response(copy.deepcopy(body)), plain)
    assert [item for _, item in plain.items] == [item for _, item in streamed.items]


@pytest.mark.parametrize("answer", OPENAI_STREAMS)
def test_openai_terminal_object_builds_the_streamed_items(answer: Recorded) -> None:
    """What OpenAI repeats in its last event is what it streamed, but for reasoning, which it encrypts anew."""
    streamed, plain = new_accumulator(), new_accumulator()
    accumulated(read_stream([answer.stream or b""]), streamed)
    final = answer.payloads[-1]["response"]
    accumulated(dialect_for("auto").read_response({**final, "output": final["output"]}), plain)
    assert [without_secret(item) for _, item in plain.items] == [without_secret(item) for _, item in streamed.items]


@pytest.mark.parametrize("answer", STREAMS)
def test_encoded_stream_decodes_to_the_same_events(answer: Recorded) -> None:
    events = client_events(answer.payloads)
    wire = b"".join(encode_event(event) for event in events)
    payloads = Recorded(answer.name, 200, wire, None).payloads
    assert [Event(payload["type"], payload) for payload in payloads] == events


def without_secret(item: Json) -> Json:
    return {name: value for name, value in item.items() if name != "encrypted_content"}


def comparable(payload: Json) -> Json:
    """A payload without what no two servers share: ids, numbers after a dropped event, the response's settings."""
    kept: dict[str, Any] = {
        name: value for name, value in payload.items() if name not in ("item_id", "obfuscation", "sequence_number")
    }
    if "item" in kept:
        kept["item"] = comparable_item(kept["item"])
    if "response" in kept:
        response = kept["response"]
        output = [without_secret(comparable_item(item)) for item in response["output"]]
        kept["response"] = {
            "status": response["status"],
            "incomplete_details": response["incomplete_details"],
            "error": response["error"],
            "output": output,
        }
    return kept


def comparable_item(item: Json) -> Json:
    return {name: value for name, value in item.items() if name != "id"}
