from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attache_core.errors import UpstreamError
from attache_core.events.event import Event
from attache_core.events.sse import SseDecoder, SseFrame, encode_event


def decoded(*chunks: bytes, max_line_bytes: int = 1024) -> list[SseFrame]:
    decoder = SseDecoder(max_line_bytes=max_line_bytes)
    frames = [frame for chunk in chunks for frame in decoder.feed(chunk)]
    decoder.close()
    return frames


@pytest.mark.parametrize(
    ("stream", "frames"),
    [
        (b"event: a\ndata: {}\n\n", [SseFrame("a", b"{}")]),
        (b"data:{}\n\n", [SseFrame(None, b"{}")]),
        (b"data:  two spaces\n\n", [SseFrame(None, b" two spaces")]),
        (b"data: one\ndata: two\n\n", [SseFrame(None, b"one\ntwo")]),
        (b"data\n\n", [SseFrame(None, b"")]),
        (b"data: \n\n", [SseFrame(None, b"")]),
        (b": comment\nid: 7\nretry: 10\nunknown: x\ndata: x\n\n", [SseFrame(None, b"x")]),
        (b"event: a\n\ndata: x\n\n", [SseFrame(None, b"x")]),
        (b"event: a\nevent: b\ndata: x\n\n", [SseFrame("b", b"x")]),
        (b"event:\ndata: x\n\n", [SseFrame(None, b"x")]),
        (b"\xef\xbb\xbfdata: x\n\n", [SseFrame(None, b"x")]),
        (b"data: \xef\xbb\xbfx\n\n", [SseFrame(None, b"\xef\xbb\xbfx")]),
        (b"data: x\r\n\r\ndata: y\r\rdata: z\n\n", [SseFrame(None, b"x"), SseFrame(None, b"y"), SseFrame(None, b"z")]),
        (b"\n\n\ndata: x\n\n\n\n", [SseFrame(None, b"x")]),
        (b"data: [DONE]\n\n", [SseFrame(None, b"[DONE]")]),
        (b"data: a:b\n\n", [SseFrame(None, b"a:b")]),
        ("data: é€😀\n\n".encode(), [SseFrame(None, "é€😀".encode())]),
        ("event: é😀\ndata: x\n\n".encode(), [SseFrame("é😀", b"x")]),
        (b"data: \xff\xc3\n\n", [SseFrame(None, b"\xff\xc3")]),
        (b"event: \xff\ndata: x\n\n", [SseFrame("\ufffd", b"x")]),
        (b"data: one\r\ndata: two\rdata:\r\n\r\n", [SseFrame(None, b"one\ntwo\n")]),
        (b"id: 1\r\n\r\nretry: 5\r\rdata: x\r\n\n", [SseFrame(None, b"x")]),
        (b":\n\n: ping\n\ndata: x\n\n", [SseFrame(None, b"x")]),
        (b"DATA: x\ndata : x\n\n", []),
        (b" data: x\n\n", []),
        (b"", []),
    ],
)
def test_stream_gives_its_frames_wherever_it_is_cut(stream: bytes, frames: list[SseFrame]) -> None:
    assert decoded(stream) == frames
    assert decoded(*(stream[at : at + 1] for at in range(len(stream)))) == frames
    for cut in range(len(stream) + 1):
        assert decoded(stream[:cut], b"", stream[cut:]) == frames


def test_event_without_its_empty_line_is_no_event() -> None:
    decoder = SseDecoder()
    assert decoder.feed(b"event: a\ndata: x\n") == []
    decoder.close()
    assert decoder.feed(b"\n\ndata: y\n\n") == [SseFrame(None, b"y")]


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x1c", "\x1e"])
def test_separators_of_unicode_end_no_line(separator: str) -> None:
    data = f'{{"delta":"a{separator}b"}}'.encode()
    assert decoded(b"data: " + data + b"\n\n") == [SseFrame(None, data)]


def test_cr_at_the_end_of_a_chunk_ends_the_event_at_once_and_its_lf_adds_nothing() -> None:
    decoder = SseDecoder()
    assert decoder.feed(b"data: x\r\n\r") == [SseFrame(None, b"x")]
    assert decoder.feed(b"\ndata: y\r\n\r\n") == [SseFrame(None, b"y")]


@pytest.mark.parametrize("size", [1, 7, 64])
@pytest.mark.parametrize(
    ("stream", "fits"),
    [
        (b"data: 123456\n\n", True),
        (b"data: 1234567\n\n", False),
        (b": 34567890123\n\n", False),
        (b"data: 12345\ndata: 123456\n\n", True),
        (b"data: 123456\ndata: 123456\n\n", False),
        (b"data:\n" * 13 + b"\n", True),
        (b"data:\n" * 14 + b"\n", False),
        (b"data: 1\n\n" * 20, True),
        (b"data: 1234567", False),
    ],
)
def test_line_or_event_over_its_bound_is_an_upstream_error_however_it_is_cut(
    stream: bytes, fits: bool, size: int
) -> None:
    chunks = [stream[at : at + size] for at in range(0, len(stream), size)]
    if fits:
        decoded(*chunks, max_line_bytes=12)
    else:
        with pytest.raises(UpstreamError):
            decoded(*chunks, max_line_bytes=12)


def test_encoded_event_is_its_type_and_its_payload() -> None:
    event = Event("error", {"type": "error", "message": "é\n\u2028", "param": None, "sequence_number": 0})
    wire = encode_event(event)
    expected = 'event: error\ndata: {"type":"error","message":"é\\n\u2028","param":null,"sequence_number":0}\n\n'
    assert wire == expected.encode()
    assert decoded(wire) == [SseFrame("error", expected[19:-2].encode())]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from([b"data", b"event", b":", b" ", b"\n", b"\r", b"x", b"\xef\xbb\xbf", b"\xff"])), st.data()
)
def test_any_cut_of_any_bytes_gives_the_same_frames(pieces: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    chunks = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert decoded(*chunks) == decoded(stream)
