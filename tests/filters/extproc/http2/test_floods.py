"""Floods: each kind ends the connection at its limit and not before, and the use of a connection never does."""

from __future__ import annotations

import pytest

from attache_filters.extproc.http2 import ConnectionFailed, ErrorCode, Http2Limits, RequestReceived, StreamReset
from filters.extproc.http2.raw_client import (
    ACK,
    DATA,
    GOAWAY,
    OK,
    PING,
    PRIORITY,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    RawClient,
    frame,
    request,
    word,
)

LIMITS = Http2Limits(max_waiting_answers=5, max_idle_frames=5, max_broken_streams=5)

IDLE = {
    "empty DATA": frame(DATA, 0, 1),
    "WINDOW_UPDATE of a stream": frame(WINDOW_UPDATE, 0, 1, word(1)),
    "WINDOW_UPDATE of the connection": frame(WINDOW_UPDATE, 0, 0, word(1)),
    "PRIORITY": frame(PRIORITY, 0, 9, word(7) + b"\0"),
    "acknowledgements of SETTINGS": frame(SETTINGS, ACK, 0),
    "acknowledgements of PING": frame(PING, ACK, 0, bytes(8)),
    "unknown frames": frame(0x77, 0, 0, b"x"),
    "GOAWAY": frame(GOAWAY, 0, 0, bytes(8)),
    "DATA of a stream that is gone": frame(DATA, 0, 3, b"x"),
    "RST_STREAM of a stream that is gone": frame(RST_STREAM, 0, 3, word(8)),
}

ANSWERED = {
    "PING": frame(PING, 0, 0, bytes(8)),
    "SETTINGS": frame(SETTINGS, 0, 0),
}


def _client() -> RawClient:
    client = RawClient(LIMITS)
    client.send(request(1), request(3))
    client.connection.send_headers(1, OK)
    client.connection.reset(3, ErrorCode.CANCEL)
    client.send(frame(DATA, 0, 1, b"progress"))
    client.answers()
    return client


def _is_calmed(client: RawClient, sent: bytes) -> bool:
    events = client.send(sent)
    return isinstance(events[-1], ConnectionFailed) and events[-1].code == ErrorCode.ENHANCE_YOUR_CALM


@pytest.mark.parametrize("kind", IDLE)
def test_frames_that_bring_nothing_end_the_connection_at_the_limit(kind: str) -> None:
    client = _client()
    for _ in range(5):
        client.send(IDLE[kind])
        client.answers()
    assert not client.connection.done
    assert _is_calmed(client, IDLE[kind])


@pytest.mark.parametrize("progress", ["body", "request", "ours", "our headers"])
def test_progress_starts_the_count_anew(progress: str) -> None:
    client = _client()
    for turn in range(4):
        client.send(IDLE["PRIORITY"] * 5)
        if progress == "body":
            client.send(frame(DATA, 0, 1, b"x"))
        elif progress == "ours":
            client.connection.send_data(1, b"x")
        else:
            client.send(request(5 + 2 * turn))
            if progress == "our headers":
                client.send(IDLE["PRIORITY"])
                client.connection.send_headers(5 + 2 * turn, OK)
    assert not client.connection.done


@pytest.mark.parametrize("kind", ANSWERED)
def test_answers_that_nobody_takes_end_the_connection_at_the_limit(kind: str) -> None:
    client = _client()
    client.send(ANSWERED[kind] * 5)
    assert not client.connection.done
    assert _is_calmed(client, ANSWERED[kind])


def test_peer_may_ping_for_ever_if_it_takes_the_answers() -> None:
    client = _client()
    for _ in range(50):
        client.send(ANSWERED["PING"])
        assert len(client.answers()) == 1
    assert not client.connection.done


def test_streams_that_the_peer_gives_up_before_an_answer_are_no_flood() -> None:
    client = RawClient(LIMITS)
    client.send(request(1))
    for stream_id in range(3, 103, 2):
        assert client.send(request(stream_id) + frame(RST_STREAM, 0, stream_id, word(8)))[1:] == [
            StreamReset(stream_id, ErrorCode.CANCEL)
        ]
    assert (client.connection.done, client.connection.open_streams) == (False, 1)


def test_streams_that_break_the_rules_end_the_connection_at_the_limit() -> None:
    client = RawClient(LIMITS)
    for stream_id in range(1, 11, 2):
        client.send(request(stream_id))
        client.connection.send_headers(stream_id, OK)
        client.send(frame(WINDOW_UPDATE, 0, stream_id, word(0)))
        client.answers()
    # Each was answered, and so gave back what it took, but for the last of them.
    assert not client.connection.done
    for stream_id in range(11, 19, 2):
        client.send(request(stream_id), frame(WINDOW_UPDATE, 0, stream_id, word(0)))
        client.answers()
    assert _is_calmed(client, request(19) + frame(WINDOW_UPDATE, 0, 19, word(0)))


def test_streams_that_end_by_reset_once_they_were_answered_are_no_flood() -> None:
    client = RawClient(LIMITS)
    for stream_id in range(1, 101, 2):
        assert client.send(request(stream_id))[0][0] == stream_id
        client.connection.send_headers(stream_id, OK)
        client.send(frame(RST_STREAM, 0, stream_id, word(8)))
        client.answers()
    assert not client.connection.done


def test_streams_that_were_answered_may_all_end_by_reset_at_once() -> None:
    client = RawClient(LIMITS)
    stream_ids = range(1, 41, 2)
    for stream_id in stream_ids:
        client.send(request(stream_id))
        client.connection.send_headers(stream_id, OK)
    events = client.send(*(frame(RST_STREAM, 0, stream_id, word(8)) for stream_id in stream_ids))
    assert [event[0] for event in events] == list(stream_ids)
    assert not client.connection.done


def test_stream_table_is_empty_after_any_number_of_exchanges() -> None:
    client = RawClient()
    for stream_id in range(1, 2001, 2):
        (event,) = client.send(request(stream_id, end_stream=True))
        assert isinstance(event, RequestReceived)
        client.connection.send_headers(stream_id, OK, end_stream=True)
        client.answers()
    assert client.connection.open_streams == 0
