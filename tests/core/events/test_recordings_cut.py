"""Recorded streams cut in every way that a network may cut them, under each line end: always the same events.

An event depends on its own bytes, and on whether the decoder was left as it was found. So each cut is tried on the
event that it falls in, with another behind it, and of events that differ in a word only one is tried: that makes every
byte of every recording affordable. What random cuts of whole streams give goes through the whole round.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attache_core.events.event import Event
from attache_core.events.sse import SseDecoder, SseFrame
from core.events.canonical_stream import check_stream
from core.events.pipeline import accumulated, read_stream, sequenced
from core.events.recordings import Recorded, all_recorded, recorded

LINE_ENDS = pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"], ids=["lf", "crlf", "cr"])
ANSWERS = list(all_recorded(stream=True))
STREAMS = pytest.mark.parametrize("answer", [pytest.param(answer, id=answer.name) for answer in ANSWERS])
FORM_BYTES = 200
NEXT = SseFrame("next", b"{}")
SMALL = (
    "text/text-only-vllm-gemma4.yaml",
    "llama_cpp/text-gemma3-270m-streaming.yaml",
    "sglang/sglang-tool-call-auto-Qwen-Qwen3-8B-streaming.yaml",
)


def stream_of(answer: Recorded, line_end: bytes = b"\n") -> bytes:
    assert answer.stream is not None
    return answer.stream.replace(b"\n", line_end)


def events_of(chunks: Iterator[bytes] | list[bytes]) -> list[Event]:
    return sequenced(accumulated(read_stream(chunks)))


def frames_of(stream: bytes, chunk_bytes: int) -> list[SseFrame]:
    decoder = SseDecoder()
    chunks = (stream[at : at + chunk_bytes] for at in range(0, len(stream), chunk_bytes))
    return [frame for chunk in chunks for frame in decoder.feed(chunk)]


def different_events() -> list[bytes]:
    """One event of each form in all recordings: most differ in a word and a number."""
    events = (part + b"\n\n" for answer in ANSWERS for part in stream_of(answer).split(b"\n\n") if part)
    return list({re.sub(rb"[\w ./:-]+", b"x", event)[:FORM_BYTES]: event for event in events}.values())


@LINE_ENDS
def test_every_form_of_recorded_event_cut_at_any_byte_is_the_same_event(line_end: bytes) -> None:
    behind = b"event: next\ndata: {}\n\n".replace(b"\n", line_end)
    for event in (event.replace(b"\n", line_end) for event in different_events()):
        frame, _ = SseDecoder().feed(event + behind)
        for cut in range(len(event) + 1):
            decoder = SseDecoder()
            got = decoder.feed(event[:cut]) + decoder.feed(event[cut:] + behind)
            assert got == [frame, NEXT], (event, cut)


@LINE_ENDS
@STREAMS
def test_recording_byte_by_byte_gives_the_same_events(answer: Recorded, line_end: bytes) -> None:
    assert frames_of(stream_of(answer, line_end), 1) == frames_of(stream_of(answer), 1 << 30)


@LINE_ENDS
@pytest.mark.parametrize("name", SMALL)
def test_small_recording_cut_at_any_byte_gives_the_same_round(name: str, line_end: bytes) -> None:
    answer = recorded(name)[0]
    stream, whole = stream_of(answer, line_end), events_of([stream_of(answer)])
    check_stream(whole)
    assert events_of(stream[at : at + 1] for at in range(len(stream))) == whole
    for cut in range(0, len(stream), 1 if len(stream) < 3000 else 13):
        assert events_of([stream[:cut], stream[cut:]]) == whole


@settings(max_examples=60, deadline=None)
@given(answer=st.sampled_from(ANSWERS), line_end=st.sampled_from([b"\n", b"\r\n", b"\r"]), data=st.data())
def test_recording_in_random_pieces_gives_the_same_round(
    answer: Recorded, line_end: bytes, data: st.DataObject
) -> None:
    stream = stream_of(answer, line_end)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=30)))
    pieces = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert events_of(pieces) == events_of([stream_of(answer)])
