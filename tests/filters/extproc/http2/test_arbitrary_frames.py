"""Whatever a peer sends: nothing is raised, every answer is a frame, and a connection that ends says why."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from attache_filters.extproc.http2 import (
    ConnectionFailed,
    DataReceived,
    ErrorCode,
    Http2Connection,
    Http2Event,
    Http2Limits,
    RequestReceived,
    StreamReset,
)
from filters.extproc.http2.raw_client import (
    GOAWAY,
    OK,
    PREFACE,
    SETTINGS,
    TRAILERS,
    block,
    frame,
    parsed,
    request,
    setting,
    word,
)

LIMITS = Http2Limits(
    max_concurrent_streams=3,
    stream_window_bytes=400,
    max_header_list_bytes=2000,
    max_remembered_resets=4,
    max_waiting_answers=20,
    max_idle_frames=20,
    max_broken_streams=10,
)
STREAM_IDS = st.one_of(st.integers(0, 9), st.integers(0, (1 << 32) - 1))
PAYLOADS = st.one_of(
    st.binary(max_size=300),
    st.builds(word, st.one_of(st.integers(0, 100), st.integers(0, (1 << 32) - 1))),
    st.builds(setting, st.integers(0, 8), st.one_of(st.integers(0, 1000), st.integers(0, (1 << 32) - 1))),
    st.just(block()),
    st.just(bytes(8)),
)
FRAMES = st.one_of(
    st.builds(frame, st.integers(0, 10), st.integers(0, 255), STREAM_IDS, PAYLOADS),
    st.builds(frame, st.integers(0, 9), st.sampled_from([0, 1, 4, 5, 8, 9]), st.integers(0, 9), PAYLOADS),
    st.builds(request, st.integers(0, 9), end_stream=st.booleans()),
)
CUTS = st.lists(st.integers(1, 200), min_size=1, max_size=20)


def _play(sent: bytes, cuts: list[int]) -> tuple[list[Http2Event], bytes]:
    """Feed a connection in pieces, and answer as a server would; all events, all output."""
    connection = Http2Connection(LIMITS)
    events: list[Http2Event] = []
    output = [connection.take_output()]
    position = turn = 0
    while position < len(sent):
        size = cuts[turn % len(cuts)]
        new = connection.receive(sent[position : position + size])
        position, turn = position + size, turn + 1
        for event in new:
            _answer(connection, event)
        events += new
        output.append(connection.take_output())
    _is_consistent(connection, events)
    return events, b"".join(output)


def _answer(connection: Http2Connection, event: Http2Event) -> None:
    if isinstance(event, RequestReceived):
        connection.send_headers(event.stream_id, OK)
    elif isinstance(event, DataReceived):
        connection.consume(event.stream_id, len(event.data))
        connection.send_data(event.stream_id, event.data)
        if event.end_stream:
            connection.send_headers(event.stream_id, TRAILERS, end_stream=True)


def _is_consistent(connection: Http2Connection, events: list[Http2Event]) -> None:
    """Every event belongs to a stream that was opened before it and not reset, and a failure is the last."""
    opened: set[int] = set()
    for number, event in enumerate(events):
        if isinstance(event, RequestReceived):
            assert event.stream_id not in opened
            assert event.stream_id % 2 == 1
            opened.add(event.stream_id)
        elif isinstance(event, DataReceived):
            assert event.stream_id in opened
        elif isinstance(event, StreamReset):
            opened.remove(event.stream_id)
        elif isinstance(event, ConnectionFailed):
            assert number == len(events) - 1
    failed = bool(events) and isinstance(events[-1], ConnectionFailed)
    assert connection.done is failed
    assert connection.open_streams <= LIMITS.max_concurrent_streams


def _ends_well(events: list[Http2Event], output: bytes) -> None:
    frames = parsed(output)
    assert frames[0].kind == SETTINGS
    goaways = [frame for frame in frames if frame.kind == GOAWAY]
    failures = [event for event in events if isinstance(event, ConnectionFailed)]
    assert [frame.payload[4:8] for frame in goaways] == [word(failure.code) for failure in failures]
    assert frames[-1].kind == GOAWAY or not failures
    assert all(failure.code in set(ErrorCode) for failure in failures)


@settings(max_examples=150, deadline=None)
@given(sent=st.binary(max_size=200), cuts=CUTS)
def test_any_bytes_are_refused_as_no_preface(sent: bytes, cuts: list[int]) -> None:
    _ends_well(*_play(sent, cuts))


@settings(max_examples=150, deadline=None)
@given(sent=st.binary(max_size=400), cuts=CUTS)
def test_any_bytes_after_the_preface_end_with_a_reason_or_are_legal(sent: bytes, cuts: list[int]) -> None:
    _ends_well(*_play(PREFACE + frame(SETTINGS, 0, 0) + sent, cuts))


@settings(max_examples=300, deadline=None)
@given(frames=st.lists(FRAMES, max_size=30), cuts=CUTS)
def test_any_frames_end_with_a_reason_or_are_legal(frames: list[bytes], cuts: list[int]) -> None:
    _ends_well(*_play(PREFACE + frame(SETTINGS, 0, 0) + b"".join(frames), cuts))


@settings(max_examples=150, deadline=None)
@given(frames=st.lists(FRAMES, max_size=30), cuts=CUTS)
def test_any_cut_of_any_frames_brings_the_same(frames: list[bytes], cuts: list[int]) -> None:
    sent = PREFACE + frame(SETTINGS, 0, 0) + b"".join(frames)
    generous = Http2Limits(max_concurrent_streams=3, stream_window_bytes=400)

    def events(pieces: list[bytes]) -> tuple[list[Http2Event], bytes]:
        connection = Http2Connection(generous)
        return [event for piece in pieces for event in connection.receive(piece)], connection.take_output()

    positions = [0]
    while positions[-1] < len(sent):
        positions.append(positions[-1] + cuts[len(positions) % len(cuts)])
    assert events([sent[start:end] for start, end in pairwise(positions)]) == events([sent])
