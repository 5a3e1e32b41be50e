"""One connection, frame by frame: what is legal, what is passed over, and how it ends."""

from __future__ import annotations

import pytest

from attache_filters.extproc.http2 import (
    DataReceived,
    ErrorCode,
    GoAwayReceived,
    Http2Connection,
    Http2Limits,
    RequestReceived,
    StreamReset,
)
from filters.extproc.http2.raw_client import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    OK,
    PADDED,
    PING,
    POST,
    PREFACE,
    PRIORITY,
    RST_STREAM,
    SETTINGS,
    TRAILERS,
    WINDOW_UPDATE,
    WITH_PRIORITY,
    Frame,
    RawClient,
    block,
    frame,
    parsed,
    request,
    setting,
    word,
)

MAX_STREAM_ID = (1 << 31) - 1


def test_connection_begins_with_settings_and_a_window() -> None:
    connection = Http2Connection()
    settings = setting(3, 1024) + setting(4, 256 * 1024) + setting(6, 16 * 1024)
    window = word(16 * 1024 * 1024 - 65_535)
    assert parsed(connection.take_output()) == [
        Frame(SETTINGS, 0, 0, settings),
        Frame(WINDOW_UPDATE, 0, 0, window),
    ]
    assert connection.take_output() == b""


def test_settings_are_acknowledged() -> None:
    client = RawClient(greet=False)
    client.answers()
    assert client.send(PREFACE, frame(SETTINGS, 0, 0, setting(1, 0) + setting(2, 0) + setting(5, 1 << 20))) == []
    assert client.answers() == [Frame(SETTINGS, ACK, 0, b"")]


def test_exchange_is_reported_and_answered() -> None:
    client = RawClient()
    events = client.send(request(1), frame(DATA, 0, 1, b"one"), frame(DATA, END_STREAM, 1, b"two"))
    assert events == [RequestReceived(1, POST, False), DataReceived(1, b"one", False), DataReceived(1, b"two", True)]
    client.connection.send_headers(1, OK)
    client.connection.send_data(1, b"three")
    client.connection.send_data(1, b"")
    client.connection.send_headers(1, TRAILERS, end_stream=True)
    assert [answer[:3] for answer in client.answers()] == [
        (HEADERS, END_HEADERS, 1),
        (DATA, 0, 1),
        (HEADERS, END_HEADERS | END_STREAM, 1),
    ]
    assert client.connection.open_streams == 0


def test_request_may_be_cut_anywhere_in_its_header_block() -> None:
    whole = block()
    fragments = [whole[:1], b"", whole[1:]]
    client = RawClient()
    events = client.send(
        frame(HEADERS, END_STREAM, 1, fragments[0]),
        frame(CONTINUATION, 0, 1, fragments[1]),
        frame(CONTINUATION, END_HEADERS, 1, fragments[2]),
    )
    assert events == [RequestReceived(1, POST, True)]


def test_padding_and_priority_are_taken_off() -> None:
    client = RawClient()
    headers = b"\x02" + word(3) + b"\x10" + block() + b"\0\0"
    events = client.send(
        frame(HEADERS, END_HEADERS | PADDED | WITH_PRIORITY, 1, headers),
        frame(PRIORITY, 0, 1, word(5) + b"\0"),
        frame(PRIORITY, 0, 9, word(1) + b"\0"),
        frame(DATA, PADDED, 1, b"\x03abc\0\0\0"),
        frame(DATA, PADDED, 1, b"\x03\0\0\0"),
        frame(DATA, PADDED | END_STREAM, 1, b"\x00"),
    )
    assert events == [RequestReceived(1, POST, False), DataReceived(1, b"abc", False), DataReceived(1, b"", True)]


def test_trailers_end_a_request_and_are_left_out() -> None:
    client = RawClient()
    events = client.send(request(1), request(1, end_stream=True, fields=((b"a", b"b"),)))
    assert events[1:] == [DataReceived(1, b"", True)]


def test_body_of_its_content_length_is_taken() -> None:
    client = RawClient()
    fields = (*POST, (b"content-length", b"3"), (b"content-length", b"3"))
    events = client.send(request(1, fields=fields), frame(DATA, 0, 1, b"12"), frame(DATA, END_STREAM, 1, b"3"))
    assert events[1:] == [DataReceived(1, b"12", False), DataReceived(1, b"3", True)]
    none = (*POST, (b"content-length", b"0"))
    assert client.send(request(3, end_stream=True, fields=none)) == [RequestReceived(3, none, True)]


def test_ping_is_answered_and_its_answer_is_not() -> None:
    client = RawClient()
    assert client.send(frame(PING, 0, 0, b"12345678"), frame(PING, ACK, 0, b"87654321")) == []
    assert client.answers() == [Frame(PING, ACK, 0, b"12345678")]


def test_unknown_frames_and_settings_are_passed_over() -> None:
    client = RawClient()
    assert client.send(frame(0x10, 0xFF, 1, b"x"), frame(0xFF, 0, 0), frame(SETTINGS, 0, 0, setting(0x99, 7))) == []
    assert client.answers() == [Frame(SETTINGS, ACK, 0, b"")]


def test_reserved_bit_of_a_stream_is_passed_over() -> None:
    client = RawClient()
    assert client.send(frame(HEADERS, END_HEADERS, 1 | 1 << 31, block())) == [RequestReceived(1, POST, False)]


def test_reset_of_the_peer_ends_the_stream() -> None:
    client = RawClient()
    client.send(request(1))
    client.connection.send_headers(1, OK)
    assert client.send(frame(RST_STREAM, 0, 1, word(8)), frame(RST_STREAM, 0, 1, word(77))) == [StreamReset(1, 8)]
    client.answers()
    client.connection.send_data(1, b"late")
    client.connection.send_headers(1, TRAILERS, end_stream=True)
    client.connection.reset(1, ErrorCode.CANCEL)
    client.connection.consume(1, 5)
    assert (client.answers(), client.connection.unsent(1)) == ([], 0)


def test_code_that_no_rfc_knows_is_reported() -> None:
    client = RawClient()
    client.send(request(1))
    assert client.send(frame(RST_STREAM, 0, 1, word(0xFFFF_FFFF))) == [StreamReset(1, 0xFFFF_FFFF)]


def test_reset_of_ours_ends_the_stream_and_late_frames_are_passed_over() -> None:
    client = RawClient()
    client.send(request(1))
    client.connection.reset(1, ErrorCode.INTERNAL_ERROR)
    assert client.answers() == [Frame(RST_STREAM, 0, 1, word(ErrorCode.INTERNAL_ERROR))]
    late = [frame(DATA, 0, 1, b"late"), request(1, end_stream=True, fields=TRAILERS), frame(RST_STREAM, 0, 1, word(8))]
    assert client.send(*late) == []
    assert client.answers() == []


def test_response_that_ends_first_tells_the_peer_to_stop() -> None:
    client = RawClient()
    client.send(request(1))
    client.connection.send_headers(1, (*OK, *TRAILERS), end_stream=True)
    headers, reset = client.answers()
    assert headers[:3] == (HEADERS, END_HEADERS | END_STREAM, 1)
    assert reset == Frame(RST_STREAM, 0, 1, word(ErrorCode.NO_ERROR))
    assert client.send(frame(DATA, END_STREAM, 1, b"late")) == []


def test_late_frames_are_passed_over_for_as_many_streams_as_are_remembered() -> None:
    client = RawClient(Http2Limits(max_remembered_resets=2))
    client.send(request(1), request(3), request(5))
    for stream_id in (1, 3, 5):
        client.connection.reset(stream_id, ErrorCode.CANCEL)
    assert client.send(frame(DATA, 0, 3, b"late"), frame(DATA, 0, 5, b"late")) == []
    assert client.send(frame(DATA, 0, 1, b"too late"))[0][0] == ErrorCode.STREAM_CLOSED


def test_large_header_list_goes_out_in_continuations() -> None:
    client = RawClient()
    client.send(request(1, end_stream=True))
    client.connection.send_headers(1, (*OK, (b"grpc-message", b"&" * 40_000)), end_stream=True)
    answers = client.answers()
    assert [answer[:2] for answer in answers] == [(HEADERS, END_STREAM), (CONTINUATION, 0), (CONTINUATION, END_HEADERS)]
    assert [len(answer.payload) for answer in answers[:2]] == [16_384, 16_384]


def test_going_away_lets_streams_under_way_end() -> None:
    client = RawClient()
    client.send(request(1))
    client.connection.go_away()
    client.connection.go_away()
    first, ping = client.answers()
    assert first == Frame(GOAWAY, 0, 0, word(MAX_STREAM_ID) + word(0))
    assert ping[:3] == (PING, 0, 0)
    # A request that was on its way is served; only then the last is known.
    assert client.send(request(3)) == [RequestReceived(3, POST, False)]
    assert client.send(frame(PING, ACK, 0, bytes(8)), frame(PING, ACK, 0, ping.payload)) == []
    assert client.answers() == [Frame(GOAWAY, 0, 0, word(3) + word(0))]
    assert client.send(request(5), frame(DATA, END_STREAM, 5, b"unheard")) == []
    for stream_id in (1, 3):
        assert not client.connection.done
        client.send(frame(DATA, END_STREAM, stream_id))
        client.connection.send_headers(stream_id, OK, end_stream=True)
    assert client.connection.done


def test_going_away_without_streams_waits_until_the_peer_knows() -> None:
    client = RawClient()
    client.connection.go_away()
    assert not client.connection.done
    client.send(frame(PING, ACK, 0, client.answers()[1].payload))
    assert client.connection.done


def test_going_away_for_an_error_ends_everything_at_once() -> None:
    client = RawClient()
    client.send(request(1))
    client.connection.go_away(ErrorCode.INTERNAL_ERROR)
    assert client.answers() == [Frame(GOAWAY, 0, 0, word(1) + word(ErrorCode.INTERNAL_ERROR))]
    assert (client.connection.done, client.connection.open_streams) == (True, 0)


def test_violation_while_leaving_never_promises_more_streams() -> None:
    client = RawClient()
    client.connection.go_away()
    client.send(frame(PING, ACK, 0, client.answers()[1].payload))
    client.send(request(1), frame(PING, 0, 1))
    assert [answer.payload[:8] for answer in client.answers()] == [word(0) + word(0), word(0) + word(1)]


def test_goaway_of_the_peer_is_reported_and_ends_no_stream() -> None:
    client = RawClient()
    client.send(request(1))
    assert client.send(frame(GOAWAY, 0, 0, word(0) + word(2) + b"why")) == [GoAwayReceived(2, 0)]
    assert client.connection.open_streams == 1


def test_preface_may_come_byte_by_byte() -> None:
    client = RawClient(greet=False)
    client.answers()
    for byte in PREFACE + frame(SETTINGS, 0, 0) + frame(PING, 0, 0, b"12345678"):
        assert client.send(bytes([byte])) == []
    assert client.answers() == [Frame(SETTINGS, ACK, 0, b""), Frame(PING, ACK, 0, b"12345678")]


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_any_cut_of_a_long_frame_brings_it_whole(size: int) -> None:
    client = RawClient()
    sent = request(1) + frame(DATA, END_STREAM, 1, bytes(range(256)) * 64)
    events = [event for start in range(0, len(sent), size) for event in client.send(sent[start : start + size])]
    assert events == [RequestReceived(1, POST, False), DataReceived(1, bytes(range(256)) * 64, True)]
