"""What a peer may not do, and the code that it is told: of its stream, or of the connection."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from attache_filters.extproc.http2 import ConnectionFailed, ErrorCode, Http2Limits, StreamReset
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
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
    TRAILERS,
    WINDOW_UPDATE,
    WITH_PRIORITY,
    Frame,
    RawClient,
    block,
    frame,
    request,
    setting,
    word,
)

PROTOCOL = ErrorCode.PROTOCOL_ERROR
SIZE = ErrorCode.FRAME_SIZE_ERROR
FLOW = ErrorCode.FLOW_CONTROL_ERROR
CLOSED = ErrorCode.STREAM_CLOSED
CALM = ErrorCode.ENHANCE_YOUR_CALM

OPEN = request(1)
ENDED = request(1, end_stream=True)
RESET = OPEN + frame(RST_STREAM, 0, 1, word(ErrorCode.CANCEL))
LIMITS = Http2Limits(max_header_list_bytes=1000, max_header_block_bytes=500, max_continuation_frames=3)


@dataclass(frozen=True)
class Case:
    """What is sent after the prefaces, and the code that answers it."""

    name: str
    sent: bytes
    code: ErrorCode


OF_CONNECTION = [
    Case("DATA without a stream", frame(DATA, 0, 0, b"x"), PROTOCOL),
    Case("DATA on an idle stream", frame(DATA, 0, 1, b"x"), PROTOCOL),
    Case("DATA on a stream of the server", OPEN + frame(DATA, 0, 2, b"x"), PROTOCOL),
    Case("DATA on a stream that the peer reset", RESET + frame(DATA, 0, 1, b"x"), CLOSED),
    Case("DATA on a stream that was skipped", request(3) + frame(DATA, 0, 1, b"x"), CLOSED),
    Case("DATA with padding as long as itself", OPEN + frame(DATA, PADDED, 1, b"\x02ab"[:2]), PROTOCOL),
    Case("DATA without the length of its padding", OPEN + frame(DATA, PADDED, 1), SIZE),
    Case("a frame over 2^14 bytes", OPEN + frame(DATA, 0, 1, bytes(16_385)), SIZE),
    Case("the head alone of a frame over 2^14 bytes", frame(DATA, 0, 1, bytes(16_385))[:9], SIZE),
    Case("HEADERS without a stream", frame(HEADERS, END_HEADERS, 0, block()), PROTOCOL),
    Case("HEADERS on a stream of the server", request(2), PROTOCOL),
    Case("HEADERS on a lower stream", request(3) + request(1), CLOSED),
    Case("HEADERS on a stream that the peer reset", RESET + request(1), CLOSED),
    Case("HEADERS with more padding than itself", frame(HEADERS, END_HEADERS | PADDED, 1, b"\x01"), PROTOCOL),
    Case("HEADERS with half a priority", frame(HEADERS, END_HEADERS | WITH_PRIORITY, 1, b"\0\0\0\0"), SIZE),
    Case(
        "HEADERS that depend on themselves",
        frame(HEADERS, END_HEADERS | WITH_PRIORITY, 1, word(1) + b"\x10" + block()),
        PROTOCOL,
    ),
    Case(
        "HEADERS with an index of no field",
        frame(HEADERS, END_HEADERS, 1, b"\xff\xff\x03"),
        ErrorCode.COMPRESSION_ERROR,
    ),
    Case("HEADERS cut within a field", frame(HEADERS, END_HEADERS, 1, block()[:-1]), ErrorCode.COMPRESSION_ERROR),
    Case(
        "HEADERS with a bad block on a closed stream",
        RESET + frame(HEADERS, END_HEADERS, 1, b"\xbf"),
        ErrorCode.COMPRESSION_ERROR,
    ),
    Case(
        "a table of more bytes than allowed",
        frame(HEADERS, END_HEADERS, 1, b"\x3f\xe2\x1f" + block()),
        ErrorCode.COMPRESSION_ERROR,
    ),
    Case("a header list that is too long", frame(HEADERS, END_HEADERS, 1, b"\x82" * 30), CALM),
    Case("a header block that is too long", frame(HEADERS, 0, 1, bytes(501)), CALM),
    Case(
        "a header block that grows too long",
        frame(HEADERS, 0, 1, bytes(400)) + frame(CONTINUATION, 0, 1, bytes(101)),
        CALM,
    ),
    Case("a header block of too many frames", frame(HEADERS, 0, 1, b"") + frame(CONTINUATION, 0, 1, b"") * 4, CALM),
    Case("CONTINUATION of nothing", frame(CONTINUATION, END_HEADERS, 1, block()), PROTOCOL),
    Case("CONTINUATION after the end", OPEN + frame(CONTINUATION, END_HEADERS, 1, b""), PROTOCOL),
    Case(
        "CONTINUATION of another stream",
        frame(HEADERS, 0, 1, b"") + frame(CONTINUATION, END_HEADERS, 3, block()),
        PROTOCOL,
    ),
    Case("PING within a header block", frame(HEADERS, 0, 1, b"") + frame(PING, 0, 0, bytes(8)), PROTOCOL),
    Case("an unknown frame within a header block", frame(HEADERS, 0, 1, b"") + frame(99, 0, 0), PROTOCOL),
    Case("PRIORITY without a stream", frame(PRIORITY, 0, 0, word(3) + b"\0"), PROTOCOL),
    Case("PRIORITY of 4 bytes", frame(PRIORITY, 0, 1, word(3)), SIZE),
    Case("PRIORITY of a stream that depends on itself", frame(PRIORITY, 0, 1, word(1) + b"\0"), PROTOCOL),
    Case("RST_STREAM without a stream", frame(RST_STREAM, 0, 0, word(8)), PROTOCOL),
    Case("RST_STREAM of an idle stream", frame(RST_STREAM, 0, 1, word(8)), PROTOCOL),
    Case("RST_STREAM of 3 bytes", OPEN + frame(RST_STREAM, 0, 1, b"\0\0\0"), SIZE),
    Case("SETTINGS on a stream", frame(SETTINGS, 0, 1), PROTOCOL),
    Case("SETTINGS of 5 bytes", frame(SETTINGS, 0, 0, bytes(5)), SIZE),
    Case("an acknowledgement with settings", frame(SETTINGS, ACK, 0, setting(4, 1)), SIZE),
    Case("ENABLE_PUSH of 2", frame(SETTINGS, 0, 0, setting(2, 2)), PROTOCOL),
    Case("INITIAL_WINDOW_SIZE of 2^31", frame(SETTINGS, 0, 0, setting(4, 1 << 31)), FLOW),
    Case("MAX_FRAME_SIZE under 2^14", frame(SETTINGS, 0, 0, setting(5, (1 << 14) - 1)), PROTOCOL),
    Case("MAX_FRAME_SIZE of 2^24", frame(SETTINGS, 0, 0, setting(5, 1 << 24)), PROTOCOL),
    Case(
        "INITIAL_WINDOW_SIZE that lifts a stream's window over 2^31-1",
        OPEN + frame(WINDOW_UPDATE, 0, 1, word(1)) + frame(SETTINGS, 0, 0, setting(4, (1 << 31) - 1)),
        FLOW,
    ),
    Case("PUSH_PROMISE", OPEN + frame(PUSH_PROMISE, END_HEADERS, 1, word(2) + block()), PROTOCOL),
    Case("PING on a stream", OPEN + frame(PING, 0, 1, bytes(8)), PROTOCOL),
    Case("PING of 7 bytes", frame(PING, 0, 0, bytes(7)), SIZE),
    Case("GOAWAY on a stream", OPEN + frame(GOAWAY, 0, 1, bytes(8)), PROTOCOL),
    Case("GOAWAY of 7 bytes", frame(GOAWAY, 0, 0, bytes(7)), SIZE),
    Case("WINDOW_UPDATE of 3 bytes", frame(WINDOW_UPDATE, 0, 0, bytes(3)), SIZE),
    Case("WINDOW_UPDATE of the connection by 0", frame(WINDOW_UPDATE, 0, 0, word(0)), PROTOCOL),
    Case("WINDOW_UPDATE of the connection over 2^31-1", frame(WINDOW_UPDATE, 0, 0, word((1 << 31) - 1)), FLOW),
    Case("WINDOW_UPDATE of an idle stream", frame(WINDOW_UPDATE, 0, 1, word(1)), PROTOCOL),
    Case("WINDOW_UPDATE of a stream of the server", frame(WINDOW_UPDATE, 0, 2, word(1)), PROTOCOL),
]

MALFORMED = {
    "no method": POST[1:],
    "no scheme": (POST[0], *POST[2:]),
    "no path": (*POST[:2], *POST[3:]),
    "an empty path": (*POST[:2], (b":path", b""), *POST[3:]),
    "two methods": (POST[0], *POST),
    "a pseudo-header field of a response": (*POST[:3], (b":status", b"200")),
    "an unknown pseudo-header field": (*POST[:3], (b":nonsense", b"1")),
    "a pseudo-header field after another field": (*POST[1:], POST[0]),
    "CONNECT": ((b":method", b"CONNECT"), (b":authority", b"gateway")),
    "an upper-case name": (*POST, (b"Accept", b"1")),
    "a space in a name": (*POST, (b"a b", b"1")),
    "an empty name": (*POST, (b"", b"1")),
    "a colon in a name": (*POST, (b"a:b", b"1")),
    "a name that is not ASCII": (*POST, ("ä".encode(), b"1")),
    "a line end in a value": (*POST, (b"a", b"1\r\nb: 2")),
    "a zero in a value": (*POST, (b"a", b"1\0")),
    "a space before a value": (*POST, (b"a", b" 1")),
    "a tabulator after a value": (*POST, (b"a", b"1\t")),
    "connection": (*POST, (b"connection", b"close")),
    "transfer-encoding": (*POST, (b"transfer-encoding", b"chunked")),
    "upgrade": (*POST, (b"upgrade", b"h2c")),
    "te of something else": (*POST, (b"te", b"gzip")),
    "two lengths": (*POST, (b"content-length", b"1"), (b"content-length", b"2")),
    "a length that is no number": (*POST, (b"content-length", b"+1")),
}


OF_STREAM = [
    Case("DATA after the end", ENDED + frame(DATA, 0, 1, b"x"), CLOSED),
    Case("HEADERS after the end", ENDED + request(1), CLOSED),
    Case("WINDOW_UPDATE by 0", OPEN + frame(WINDOW_UPDATE, 0, 1, word(0)), PROTOCOL),
    Case("WINDOW_UPDATE over 2^31-1", OPEN + frame(WINDOW_UPDATE, 0, 1, word((1 << 31) - 1)), FLOW),
    Case("trailers without an end", OPEN + request(1, fields=TRAILERS), PROTOCOL),
    Case("trailers with pseudo-header fields", OPEN + request(1, end_stream=True), PROTOCOL),
    Case("trailers with an upper-case name", OPEN + request(1, end_stream=True, fields=((b"A", b"1"),)), PROTOCOL),
    Case("DATA over the stream's window", OPEN + frame(DATA, 0, 1, bytes(16_384)) * 16 + frame(DATA, 0, 1, b"x"), FLOW),
    Case(
        "DATA over the content-length",
        request(1, fields=(*POST, (b"content-length", b"3"))) + frame(DATA, 0, 1, b"1234"),
        PROTOCOL,
    ),
    Case(
        "an end before the content-length",
        request(1, fields=(*POST, (b"content-length", b"3"))) + frame(DATA, END_STREAM, 1, b"12"),
        PROTOCOL,
    ),
    Case(
        "trailers before the content-length",
        request(1, fields=(*POST, (b"content-length", b"3"))) + request(1, end_stream=True, fields=TRAILERS),
        PROTOCOL,
    ),
]

OF_STREAM_NOT_TOLD = [
    *(Case(name, request(1, fields=fields), PROTOCOL) for name, fields in MALFORMED.items()),
    Case(
        "no body where one is promised",
        request(1, end_stream=True, fields=(*POST, (b"content-length", b"3"))),
        PROTOCOL,
    ),
]

BEFORE_SETTINGS = [
    Case("HTTP/1.1", b"GET / HTTP/1.1\r\n\r\n", PROTOCOL),
    Case("a preface that goes wrong at its end", PREFACE[:-1] + b"\r", PROTOCOL),
    Case("PING before SETTINGS", PREFACE + frame(PING, 0, 0, bytes(8)), PROTOCOL),
    Case("HEADERS before SETTINGS", PREFACE + OPEN, PROTOCOL),
    Case("an unknown frame before SETTINGS", PREFACE + frame(99, 0, 0), PROTOCOL),
    Case("an acknowledgement instead of SETTINGS", PREFACE + frame(SETTINGS, ACK, 0), PROTOCOL),
    Case("bad SETTINGS", PREFACE + frame(SETTINGS, 0, 0, setting(2, 2)), PROTOCOL),
]


def _names(case: Case) -> str:
    return case.name


@pytest.mark.parametrize("case", OF_CONNECTION, ids=_names)
def test_violation_ends_the_connection_with_its_code(case: Case) -> None:
    client = RawClient(LIMITS)
    assert _failed(client, case)


@pytest.mark.parametrize("case", BEFORE_SETTINGS, ids=_names)
def test_what_is_no_preface_ends_the_connection(case: Case) -> None:
    client = RawClient(greet=False)
    client.answers()
    assert _failed(client, case)


def _failed(client: RawClient, case: Case) -> bool:
    events = client.send(case.sent)
    failure, goaway = events[-1], client.answers()[-1]
    assert isinstance(failure, ConnectionFailed)
    assert failure.code is case.code
    assert (goaway.kind, goaway.payload[4:]) == (GOAWAY, word(case.code) + failure.reason.encode())
    assert client.connection.done
    assert client.connection.open_streams == 0
    assert client.send(request(99), frame(PING, 0, 0, bytes(8))) == []
    client.connection.send_headers(1, OK)
    client.connection.go_away()
    assert client.answers() == []
    return True


@pytest.mark.parametrize("case", OF_STREAM, ids=_names)
def test_violation_ends_one_stream_with_its_code_and_no_other(case: Case) -> None:
    client = RawClient()
    assert client.send(case.sent)[-1] == StreamReset(1, case.code)
    _one_stream_ended(client, case)


@pytest.mark.parametrize("case", OF_STREAM_NOT_TOLD, ids=_names)
def test_malformed_request_is_reset_and_never_reported(case: Case) -> None:
    client = RawClient()
    assert client.send(case.sent) == []
    _one_stream_ended(client, case)


def _one_stream_ended(client: RawClient, case: Case) -> None:
    resets = [answer for answer in client.answers() if answer.kind != WINDOW_UPDATE]
    assert resets == [Frame(RST_STREAM, 0, 1, word(case.code))]
    assert client.connection.open_streams == 0
    late = (frame(DATA, 0, 1, b"late"), frame(WINDOW_UPDATE, 0, 1, word(1)), frame(RST_STREAM, 0, 1, word(8)))
    assert client.send(*late, request(1, end_stream=True, fields=TRAILERS)) == []
    assert len(client.send(request(3))) == 1
    assert client.answers() == []


def test_stream_over_the_limit_is_refused_and_its_siblings_live() -> None:
    client = RawClient(Http2Limits(max_concurrent_streams=2))
    events = client.send(request(1), request(3), request(5), frame(DATA, END_STREAM, 5, b"late"))
    assert [event[0] for event in events] == [1, 3]
    assert client.answers() == [Frame(RST_STREAM, 0, 5, word(ErrorCode.REFUSED_STREAM))]
    client.send(frame(RST_STREAM, 0, 1, word(8)))
    assert len(client.send(request(7))) == 1


def test_header_block_of_a_refused_stream_still_changes_the_table() -> None:
    client = RawClient(Http2Limits(max_concurrent_streams=1))
    added = b"\x40\x01a\x01b"
    client.send(request(1), frame(HEADERS, END_HEADERS, 3, block() + added), frame(RST_STREAM, 0, 1, word(8)))
    (event,) = client.send(frame(HEADERS, END_HEADERS, 5, block() + b"\xbe"))
    assert event == (5, (*POST, (b"a", b"b")), False)
