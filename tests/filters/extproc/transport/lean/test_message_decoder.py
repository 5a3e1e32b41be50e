from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attache_filters.extproc.transport.lean.message_decoder import MessageDecoder
from attache_filters.extproc.transport.rpc import RpcError, StatusCode


def framed(message: bytes) -> bytes:
    return b"\0" + len(message).to_bytes(4, "big") + message


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[start:end] for start, end in pairwise(places)]


@given(st.lists(st.binary(max_size=40)), st.lists(st.integers(0, 1000), max_size=20))
def test_any_cut_of_the_bytes_gives_the_same_messages(messages: list[bytes], cuts: list[int]) -> None:
    decoder = MessageDecoder()
    data = b"".join(map(framed, messages))
    assert [message for piece in pieces(data, cuts) for message in decoder.feed(piece)] == messages
    decoder.close()


@given(st.binary(max_size=40), st.integers(1, 44))
def test_end_inside_a_message_is_an_error(message: bytes, missing: int) -> None:
    data = framed(message)
    decoder = MessageDecoder()
    assert decoder.feed(data[: max(1, len(data) - missing)]) == []
    with pytest.raises(RpcError) as refused:
        decoder.close()
    assert refused.value.code is StatusCode.INTERNAL


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\1\0\0\0\3abc", StatusCode.UNIMPLEMENTED),
        (b"\1\0\0\0\3", StatusCode.UNIMPLEMENTED),
        (b"\0\0\0\0\4", StatusCode.RESOURCE_EXHAUSTED),
        (framed(b"ok") + b"\0\xff\xff\xff\xffa", StatusCode.RESOURCE_EXHAUSTED),
    ],
)
def test_message_that_is_not_taken_is_refused_at_its_prefix(data: bytes, code: StatusCode) -> None:
    with pytest.raises(RpcError) as refused:
        MessageDecoder(max_message_bytes=3).feed(data)
    assert refused.value.code is code
