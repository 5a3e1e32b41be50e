"""Runs of deltas: whatever a server writes and however it is cut, the same as parsing every frame."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attache_core import json_codec
from attache_core.errors import UpstreamError
from attache_core.events.accumulator import DEFAULT_MAX_BYTES
from attache_core.events.answer_json import answer_object
from attache_core.events.delta_frames import MAX_MISSES, MAX_RUN_BYTES, FrameReader
from attache_core.events.delta_run import DeltaRun, delta_run, one_by_one
from attache_core.events.dialects import CanonicalReader, Dialect, DialectName, dialect_for
from attache_core.events.event import Event
from attache_core.events.model_events import Finished
from attache_core.events.obfuscation import BLOCK, Obfuscation
from attache_core.events.sequencer import Sequencer
from attache_core.events.sse import SseDecoder, SseFrame, encode_event
from attache_core.json_codec import Json
from core.events.pipeline import COMPLETED_AT, counted_ids, in_progress_response, new_accumulator
from core.events.recordings import Recorded, all_recorded

ANSWERS = list(all_recorded(stream=True))
DIALECTS: Sequence[DialectName] = ("auto", "openai", "vllm", "llama_cpp", "sglang")


class Frames(Protocol):
    """A `FrameReader`, or the `SseDecoder` that it must agree with."""

    def feed(self, data: bytes) -> Iterable[SseFrame | DeltaRun]: ...


@dataclass(frozen=True)
class Told:
    """What came out, without runs, and the failure that ended it."""

    events: list[Event]
    failure: str | None


SaidOf = Callable[[Any], Iterable[Any]]


def accumulated(
    said_of: SaidOf, given: Iterable[Any], max_bytes: int, obfuscation: Obfuscation | None = None
) -> tuple[list[Event], str | None]:
    accumulator = new_accumulator(max_bytes=max_bytes)
    sequencer = Sequencer(in_progress_response(), make_id=counted_ids(), obfuscation=obfuscation)
    strict = (
        event
        for one in given
        for said in said_of(one)
        for portion in accumulator.portions(said)
        for event in accumulator.feed(portion)
    )
    events: list[Event] = []
    try:
        for event in strict:
            if isinstance(event, Finished):
                events += sequencer.finish(event, completed_at=COMPLETED_AT)
            else:
                events += sequencer.emit(event)
    except UpstreamError as error:
        return events, error.message
    return events, None


def round_told(
    chunks: Iterable[bytes],
    frames: Frames,
    dialect: Dialect,
    max_bytes: int = DEFAULT_MAX_BYTES,
) -> Told:
    """What a round tells of these bytes, and what the loop above it makes of that: both must be the same."""

    def said_of(frame: SseFrame | DeltaRun) -> Iterable[Any]:
        return dialect.read_run(frame) if isinstance(frame, DeltaRun) else dialect.read_data(frame.data)

    told, failure = accumulated(said_of, (frame for chunk in chunks for frame in frames.feed(chunk)), max_bytes)
    again, refused = accumulated(CanonicalReader().read_event, told, DEFAULT_MAX_BYTES)
    assert refused is None
    assert list(one_by_one(again)) == accumulated(CanonicalReader().read_event, one_by_one(told), DEFAULT_MAX_BYTES)[0]
    return Told(list(one_by_one(told)), failure)


def passed(chunks: Iterable[bytes], frames: Frames) -> Told:
    """What a filter takes from these bytes as it comes."""
    events: list[Event] = []
    try:
        for chunk in chunks:
            for frame in frames.feed(chunk):
                if isinstance(frame, DeltaRun):
                    events.append(frame)
                elif frame.data != b"[DONE]":
                    payload = answer_object(frame.data)
                    events.append(Event(str(payload.get("type")), payload))
    except UpstreamError as error:
        return Told(list(one_by_one(events)), error.message)
    assert b"".join(map(encode_event, events)) == b"".join(map(encode_event, one_by_one(events)))
    return Told(list(one_by_one(events)), None)


def check(chunks: Sequence[bytes], dialect: DialectName = "auto", **bounds: Any) -> None:
    max_bytes = bounds.pop("max_bytes", DEFAULT_MAX_BYTES)
    assert passed(chunks, FrameReader(**bounds)) == passed(chunks, SseDecoder(**bounds))
    expected = round_told(chunks, SseDecoder(**bounds), dialect_for(dialect), max_bytes)
    assert round_told(chunks, FrameReader(**bounds), dialect_for(dialect), max_bytes) == expected


def cut(data: bytes, places: Iterable[int]) -> list[bytes]:
    places = sorted(place % (len(data) + 1) for place in places)
    return [data[start:end] for start, end in zip([0, *places], [*places, len(data)], strict=True)]


CUTS = st.lists(st.integers(0, 1 << 30), max_size=6)

# Streams of deltas that nearly look alike

PLACE: Json = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
TEXT = "response.output_text.delta"
ARGUMENTS = "response.function_call_arguments.delta"
ALPHABETICAL: Json = {"content_index": 0, "delta": "", "item_id": "m", "logprobs": [], "output_index": 1}
FORMS: Sequence[Json] = (
    {**ALPHABETICAL, "sequence_number": 0, "type": TEXT},
    {"type": TEXT, "sequence_number": 0, **PLACE, "delta": "", "logprobs": [], "obfuscation": ""},
    {"type": TEXT, **PLACE, "obfuscation": "", "delta": ""},
    {"type": TEXT, "item_id": "msg_1", "delta": ""},
    {"type": "response.reasoning_text.delta", **PLACE, "item_id": "rs_1", "delta": "", "sequence_number": 0},
    {"type": "response.reasoning_summary_text.delta", "summary_index": 0, "item_id": "rs_1", "delta": ""},
    {"type": ARGUMENTS, "item_id": "fc_1", "output_index": 2, "delta": "", "sequence_number": 0},
    {"type": ARGUMENTS, "item_id": "fc_1", "delta": ""},
)
MESSAGE: Json = {"type": "message", "id": "msg_1"}
CALL: Json = {"type": "function_call", "id": "fc_1", "name": "f"}
OTHERS: Sequence[Json] = (
    {"type": "response.created", "response": {}},
    {"type": "response.output_item.added", "output_index": 0, "item": MESSAGE},
    {"type": "response.output_item.added", "output_index": 2, "item": CALL},
    {"type": "response.output_text.done", **PLACE, "text": "other"},
    {"type": "response.output_item.done", "output_index": 0, "item": {**MESSAGE, "content": []}},
    {"type": "response.completed", "response": {"status": "completed", "output": []}},
)
LIKE_JSON = ('","item_id":"m', '"delta":"x"', '},\n{"', "{}", "[", '"', "\\", "\0delta", "\0sequence_number", "1" * 20)
LIKE_TEXT = ("a", "Hi ", "", " ", "\n", "é", "😀", "\ud83d", "\ude00", "\u2028", "%b", "event: x\n\ndata: {}\n\n")
PIECES = st.sampled_from([*LIKE_JSON, *LIKE_TEXT])
TEXTS = st.lists(PIECES, max_size=3).map("".join)
NUMBERS: st.SearchStrategy[Any] = st.sampled_from([-1, 0, 1, 1, 2, 3, 1 << 63, 1 << 70, 1.0, True, None, "1", [1], {}])
VALUES: st.SearchStrategy[Any] = st.sampled_from([None, 5, 1.5, "x", "", [], ["a"], {"a": "b"}, [{"token": "a"}], True])
DAMAGES = st.sampled_from(
    [
        (b'"delta":', b'"delta": '),
        (b'"delta":', b'"delta":\t'),
        (b'"delta":', b'"delta":"first","delta":'),
        (b'"delta":', b'"d\\u0065lta":"first","delta":'),
        (b'"delta":', b'"x":{"delta":"inner"},"delta":'),
        (b'"}\n', b'","delta":"last"}\n'),
        (b'"}\n', b'","d\\u0065lta":"last"}\n'),
        (b'"}\n', b'","sequence_number":7}\n'),
        (b'"delta":"', b'"delta":'),
        (b'"delta":"', b'"delta":"a","'),
        (b'"delta":"', b'"delta":["'),
        (b'"delta":"', b'"delta":"\xff'),
        (b'"delta":"', b'"delta":"\x01'),
        (b'"delta":"', b'"delta":"\\'),
        (b'"delta":"', b'"delta":"\\ud83d'),
        (b"data: {", b"data:{"),
        (b"data: {", b"data:  {"),
        (b"data: {", b": comment\ndata: {"),
        (b"data: {", b"data: \ndata: {"),
        (b"data: {", b"id: 1\ndata: {"),
        (b"event: ", b"event:"),
        (b"event: response.output_text.delta\n", b""),
        (b"event: response.output_text.delta\n", b"event: response.refusal.delta\n"),
        (b"\n", b"\r\n"),
        (b"\n\n", b"\n"),
        (b"\n\n", b"\n\n\n"),
        (b"\n\n", b" \n\n"),
        (b"}\n\n", b"\n\n"),
        (b"}\n\n", b"}}\n\n"),
    ]
)


@st.composite
def frames_of_one_text(draw: st.DrawFn) -> list[bytes]:
    """Deltas of one form, most of them alike."""
    form = draw(st.sampled_from(FORMS))
    ascii_only = draw(st.booleans())
    frames: list[bytes] = []
    for number, text in enumerate(draw(st.lists(TEXTS, min_size=1, max_size=7))):
        payload = {**form, "delta": text}
        if "sequence_number" in form:
            payload["sequence_number"] = number
        if "obfuscation" in form:
            payload["obfuscation"] = text[:2] if text[:2].isalnum() else "pad"
        if draw(st.integers(0, 19)) == 0:
            payload["sequence_number"] = draw(NUMBERS)
        if draw(st.integers(0, 19)) == 0:
            payload[draw(st.sampled_from(sorted(payload)))] = draw(VALUES)
        escaped = ascii_only or any("\ud800" <= character <= "\udfff" for character in text)
        data = json.dumps(payload, separators=(",", ":"), ensure_ascii=escaped)
        frame = f"event: {form['type']}\ndata: {data}\n\n".encode()
        if draw(st.integers(0, 19)) == 0:
            frame = frame.replace(*draw(DAMAGES), 1)
        frames.append(frame)
    return frames


OTHER_FRAMES = st.sampled_from(OTHERS).map(
    lambda payload: [b"event: %b\ndata: %b\n\n" % (payload["type"].encode(), json_codec.encode(payload))]
)
STREAMS = st.lists(st.one_of(frames_of_one_text(), frames_of_one_text(), OTHER_FRAMES), min_size=1, max_size=5).map(
    lambda groups: b"".join(frame for group in groups for frame in group)
)


@settings(max_examples=200, deadline=None)
@given(STREAMS, CUTS, st.sampled_from(DIALECTS))
def test_deltas_that_nearly_look_alike_say_what_parsing_each_says(
    data: bytes, places: list[int], dialect: DialectName
) -> None:
    check(cut(data, places), dialect)


@settings(max_examples=80, deadline=None)
@given(STREAMS, CUTS, st.integers(1, 400), st.integers(1, 8000))
def test_runs_keep_the_bounds_at_the_same_event(
    data: bytes, places: list[int], line_bytes: int, max_bytes: int
) -> None:
    check(cut(data, places), max_line_bytes=line_bytes)
    check(cut(data, places), max_bytes=max_bytes)


@pytest.mark.parametrize("answer", [pytest.param(answer, id=answer.name) for answer in ANSWERS])
def test_every_recording_says_the_same_in_runs(answer: Recorded) -> None:
    stream = answer.stream or b""
    check([stream])
    check(cut(stream, range(700, len(stream), 1999)))


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(ANSWERS), CUTS, st.sampled_from(DIALECTS))
def test_recordings_in_any_pieces_say_the_same_in_runs(
    answer: Recorded, places: list[int], dialect: DialectName
) -> None:
    check(cut(answer.stream or b"", places), dialect)


def deltas(texts: Iterable[str], form: Json = FORMS[1]) -> bytes:
    payloads = ({**form, "sequence_number": number, "delta": text} for number, text in enumerate(texts))
    return b"".join(b"event: %b\ndata: %b\n\n" % (form["type"].encode(), json_codec.encode(each)) for each in payloads)


def test_deltas_of_one_text_are_one_run_behind_the_first() -> None:
    first, run = FrameReader().feed(b": hello\n\n" + deltas(["one ", "two ", "three"]))
    assert isinstance(first, SseFrame)
    assert run == delta_run({**FORMS[1], "delta": ""}, ["two ", "three"], [1, 2], ["", ""])


def test_run_longer_than_is_looked_for_at_once_goes_on_in_another() -> None:
    texts = [f"word {place}" for place in range(600)]
    stream = b"\n\n" + deltas(texts)
    _, *runs = FrameReader().feed(stream)
    assert [text for run in runs if isinstance(run, DeltaRun) for text in run.texts] == texts[1:]
    assert len(runs) == len(stream) // MAX_RUN_BYTES + 1
    check([stream])


def test_run_is_encoded_as_its_events_are() -> None:
    texts = ["plain", 'quote"', "line\n", "%b %d", "\0delta", "é", "\ud83d", "", "\\"]
    for data in ({**FORMS[1]}, {**FORMS[1], "item_id": "\0delta"}, {**FORMS[1], "item_id": "100 %b"}):
        run = delta_run(data, texts, range(5, 5 + len(texts)), ["pad"] * len(texts))
        assert encode_event(run) == b"".join(map(encode_event, run.events()))


def test_server_that_writes_no_two_deltas_alike_is_read_frame_by_frame() -> None:
    reader = FrameReader()
    differing = b"".join(deltas(["text"], {**FORMS[1], "item_id": f"m_{place}"}) for place in range(MAX_MISSES + 1))
    alike = deltas(["one", "two", "three"])
    assert not any(isinstance(frame, DeltaRun) for frame in [*reader.feed(differing), *reader.feed(alike)])


def test_deltas_with_log_probabilities_are_no_run() -> None:
    form = {**FORMS[1], "logprobs": [{"token": "a", "logprob": -1.0}]}
    assert all(isinstance(frame, SseFrame) for frame in FrameReader().feed(b"\n\n" + deltas("abc", form)))


def test_each_delta_of_a_run_is_padded_and_numbered() -> None:
    dialect, data = dialect_for("auto"), deltas(["Hello", " world", ", how are you?"])

    def said_of(frame: SseFrame | DeltaRun) -> Iterable[Any]:
        return dialect.read_run(frame) if isinstance(frame, DeltaRun) else dialect.read_data(frame.data)

    reader = FrameReader()
    frames = [*reader.feed(b"\n\n"), *reader.feed(data)]
    told, _ = accumulated(said_of, frames, DEFAULT_MAX_BYTES, Obfuscation())
    events = list(one_by_one(told))
    shown = [event.data for event in events if event.type == TEXT]
    assert isinstance(told[-1], DeltaRun)
    assert [event.data["sequence_number"] for event in events] == list(range(len(events)))
    assert [payload["delta"] for payload in shown] == ["Hello", " world", ", how are you?"]
    assert all((len(payload["delta"]) + len(payload["obfuscation"])) % BLOCK == 0 for payload in shown)
    assert re.fullmatch("[a-zA-Z0-9]*", "".join(payload["obfuscation"] for payload in shown))
