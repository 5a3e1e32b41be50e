"""Windows, both ways: what is sent keeps to the peer's, and the peer gets back exactly what was taken."""

from __future__ import annotations

from attache_filters.extproc.http2 import DataReceived, ErrorCode, Http2Limits, StreamReset, Unblocked
from filters.extproc.http2.raw_client import (
    DATA,
    END_STREAM,
    HEADERS,
    OK,
    PADDED,
    RST_STREAM,
    SETTINGS,
    TRAILERS,
    WINDOW_UPDATE,
    Frame,
    RawClient,
    frame,
    request,
    setting,
    word,
)

DEFAULT = 65_535


def _answering(client: RawClient, *stream_ids: int) -> None:
    for stream_id in stream_ids:
        client.send(request(stream_id, end_stream=True))
        client.connection.send_headers(stream_id, OK)
    client.answers()


def _window_update(stream_id: int, increment: int) -> bytes:
    return frame(WINDOW_UPDATE, 0, stream_id, word(increment))


def _sizes(answers: list[Frame]) -> list[tuple[int, int]]:
    return [(answer.stream_id, len(answer.payload)) for answer in answers if answer.kind == DATA]


def test_body_is_sent_in_frames_that_every_peer_takes() -> None:
    client = RawClient()
    client.send(frame(SETTINGS, 0, 0, setting(5, 1 << 20)))
    _answering(client, 1)
    client.connection.send_data(1, bytes(40_000), end_stream=True)
    assert [(answer.flags, len(answer.payload)) for answer in client.answers()] == [
        (0, 16_384),
        (0, 16_384),
        (0, 7_232),
        (END_STREAM, 0),
    ]


def test_body_waits_for_the_streams_window() -> None:
    client = RawClient()
    client.send(_window_update(0, 1 << 20))
    _answering(client, 1)
    client.connection.send_data(1, bytes(DEFAULT + 10))
    assert sum(size for _, size in _sizes(client.answers())) == DEFAULT
    assert client.connection.unsent(1) == 10
    assert client.send(_window_update(1, 3)) == [Unblocked(1)]
    assert (_sizes(client.answers()), client.connection.unsent(1)) == ([(1, 3)], 7)
    assert client.send(_window_update(1, 100)) == [Unblocked(1)]
    assert (_sizes(client.answers()), client.connection.unsent(1)) == ([(1, 7)], 0)
    assert client.send(_window_update(1, 100)) == []


def test_streams_take_turns_at_the_connections_window() -> None:
    client = RawClient()
    client.send(frame(SETTINGS, 0, 0, setting(4, 1 << 20)))
    _answering(client, 1, 3, 5)
    client.connection.send_data(1, bytes(DEFAULT))
    for stream_id in (1, 3, 5):
        client.connection.send_data(stream_id, bytes(30_000))
    client.answers()
    assert client.send(_window_update(0, 60_000)) == [Unblocked(1), Unblocked(3), Unblocked(5)]
    assert _sizes(client.answers()) == [(1, 16_384), (3, 16_384), (5, 16_384), (1, 10_848)]


def test_streams_take_turns_also_when_the_connections_window_opens_by_a_frame_at_a_time() -> None:
    client = RawClient()
    client.send(frame(SETTINGS, 0, 0, setting(4, 1 << 20)))
    _answering(client, 1, 3, 5)
    client.connection.send_data(1, bytes(DEFAULT))
    for stream_id in (1, 3, 5):
        client.connection.send_data(stream_id, bytes(30_000))
    client.answers()
    client.send(*(_window_update(0, 16_384) for _ in range(4)))
    assert _sizes(client.answers()) == [(1, 16_384), (3, 16_384), (5, 16_384), (1, 13_616), (3, 2_768)]


def test_bodies_of_all_streams_together_keep_to_the_connections_window() -> None:
    client = RawClient()
    _answering(client, *range(1, 21, 2))
    for stream_id in range(1, 21, 2):
        client.connection.send_data(stream_id, bytes(10_000))
    assert sum(size for _, size in _sizes(client.answers())) == DEFAULT
    assert [client.connection.unsent(stream_id) for stream_id in (13, 15)] == [4_465, 10_000]


def test_streams_order_is_kept_when_it_waits() -> None:
    client = RawClient()
    _answering(client, 1)
    client.connection.send_data(1, bytes(DEFAULT))
    client.connection.send_data(1, b"a")
    client.connection.send_data(1, b"b")
    client.connection.send_headers(1, TRAILERS, end_stream=True)
    client.answers()
    assert client.connection.open_streams == 1
    client.send(_window_update(0, 2), _window_update(1, 2))
    assert [(answer.kind, answer.payload[:1]) for answer in client.answers()] == [
        (DATA, b"a"),
        (DATA, b"b"),
        (HEADERS, b"\x10"),
    ]
    assert client.connection.open_streams == 0


def test_request_is_stopped_only_after_a_response_that_had_to_wait() -> None:
    client = RawClient()
    client.send(request(1))
    client.connection.send_headers(1, OK)
    client.connection.send_data(1, bytes(DEFAULT + 1), end_stream=True)
    assert RST_STREAM not in [answer.kind for answer in client.answers()]
    client.send(_window_update(0, 1), _window_update(1, 1))
    assert [answer[:2] for answer in client.answers()] == [(DATA, 0), (DATA, END_STREAM), (RST_STREAM, 0)]


def test_end_needs_no_window() -> None:
    client = RawClient()
    client.send(frame(SETTINGS, 0, 0, setting(4, 5)))
    _answering(client, 1)
    client.connection.send_data(1, b"12345")
    client.send(frame(SETTINGS, 0, 0, setting(4, 0)))
    client.answers()
    client.connection.send_data(1, b"", end_stream=True)
    assert client.answers() == [Frame(DATA, END_STREAM, 1, b"")]
    assert client.connection.open_streams == 0


def test_smaller_initial_window_makes_windows_negative() -> None:
    client = RawClient()
    client.send(frame(SETTINGS, 0, 0, setting(4, 100)))
    _answering(client, 1)
    client.connection.send_data(1, bytes(80))
    client.send(frame(SETTINGS, 0, 0, setting(4, 30)))
    client.answers()
    client.connection.send_data(1, b"waits")
    assert client.send(_window_update(1, 50)) == []
    assert client.connection.unsent(1) == 5
    assert client.send(_window_update(1, 2)) == [Unblocked(1)]
    assert client.send(frame(SETTINGS, 0, 0, setting(4, 0x7FFF_FFFF) + setting(4, 33))) == [Unblocked(1)]
    assert client.connection.unsent(1) == 0
    assert _sizes(client.answers()) == [(1, 2), (1, 3)]


def test_reset_drops_what_waits() -> None:
    client = RawClient()
    _answering(client, 1, 3)
    client.connection.send_data(1, bytes(DEFAULT + 5))
    client.connection.send_data(3, b"3")
    assert client.send(_window_update(1, 100)) == []
    client.connection.reset(1, ErrorCode.CANCEL)
    client.answers()
    assert client.send(_window_update(0, 100)) == [Unblocked(3)]
    assert _sizes(client.answers()) == [(3, 1)]


def test_streams_window_is_given_back_as_its_body_is_consumed() -> None:
    client = RawClient(Http2Limits(stream_window_bytes=100_000))
    client.send(request(1), frame(DATA, 0, 1, bytes(16_384)) * 6)
    assert client.answers() == []
    client.connection.consume(1, 49_999)
    assert client.answers() == []
    client.connection.consume(1, 1)
    assert client.answers() == [Frame(WINDOW_UPDATE, 0, 1, word(50_000))]
    client.connection.consume(1, 10_000)
    assert client.answers() == []


def test_padding_is_given_back_unasked() -> None:
    client = RawClient(Http2Limits(stream_window_bytes=1000))
    client.send(request(1))
    for _ in range(100):
        assert client.send(frame(DATA, PADDED, 1, b"\xc8" + bytes(200))) == []
    assert sum(int.from_bytes(answer.payload, "big") for answer in client.answers()) >= 100 * 201 - 500


def test_request_that_has_ended_gets_no_more_window() -> None:
    client = RawClient(Http2Limits(stream_window_bytes=100))
    client.send(request(1), frame(DATA, END_STREAM, 1, bytes(100)))
    client.connection.consume(1, 100)
    assert client.answers() == []


def test_connections_window_is_given_back_whoever_reads() -> None:
    client = RawClient(Http2Limits(connection_window_bytes=DEFAULT))
    client.send(request(1), request(3))
    client.connection.reset(3, ErrorCode.CANCEL)
    client.answers()
    client.send(frame(DATA, 0, 1, bytes(16_000)), frame(DATA, 0, 3, bytes(16_000)), frame(DATA, 0, 3, bytes(767)))
    assert client.answers() == [Frame(WINDOW_UPDATE, 0, 0, word(32_767))]


def test_window_below_the_default_holds_once_the_peer_knows_it() -> None:
    client = RawClient(Http2Limits(stream_window_bytes=10), greet=False)
    settings = frame(SETTINGS, 0, 0)
    from_before = client.send(
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", settings, request(1), frame(DATA, 0, 1, bytes(16_000))
    )
    assert from_before[-1] == DataReceived(1, bytes(16_000), False)
    client.send(frame(SETTINGS, 1, 0))
    # The stream used up more than it has now: it waits until as much was taken.
    assert client.send(frame(DATA, 0, 1, b"x")) == [StreamReset(1, ErrorCode.FLOW_CONTROL_ERROR)]
    assert client.send(request(3), frame(DATA, 0, 3, bytes(10)))[1:] == [DataReceived(3, bytes(10), False)]
    assert client.send(frame(DATA, 0, 3, b"x")) == [StreamReset(3, ErrorCode.FLOW_CONTROL_ERROR)]
