"""Header lists: the cache of blocks never shows, and our own blocks leave the peer's table alone."""

from __future__ import annotations

import pytest
from hpack import Decoder, Encoder
from hypothesis import given, settings
from hypothesis import strategies as st

from attache_filters.extproc.http2.errors import ConnectionViolationError
from attache_filters.extproc.http2.headers import NO_DYNAMIC_TABLE, HeaderDecoder, encode
from filters.extproc.http2.raw_client import OK, POST

FIELDS = st.tuples(
    st.sampled_from([b"a", b"content-type", b"x-segment"]),
    st.sampled_from([b"", b"1", b"application/grpc", bytes(100)]),
    st.booleans(),
)


@settings(max_examples=150, deadline=None)
@given(
    lists=st.lists(st.lists(FIELDS, max_size=4), max_size=12),
    sizes=st.dictionaries(st.integers(0, 11), st.sampled_from([0, 40, 200, 4096])),
)
def test_each_block_means_what_a_decoder_without_a_cache_says(
    lists: list[list[tuple[bytes, bytes, bool]]], sizes: dict[int, int]
) -> None:
    encoder, plain, ours = Encoder(), Decoder(), HeaderDecoder(1 << 16)
    for number, fields in enumerate(lists):
        if number in sizes:
            encoder.header_table_size = sizes[number]
        block = encoder.encode(fields)
        assert ours.decode(block).headers == tuple(map(tuple, plain.decode(block, raw=True)))
        assert ours.decode(b"").headers == ()


@settings(max_examples=150, deadline=None)
@given(blocks=st.lists(st.binary(max_size=12), max_size=8))
def test_any_bytes_mean_what_a_decoder_without_a_cache_says(blocks: list[bytes]) -> None:
    plain, ours = Decoder(max_header_list_size=400), HeaderDecoder(400)
    for block in blocks * 2:
        try:
            expected = tuple(map(tuple, plain.decode(block, raw=True)))
        except Exception:  # noqa: BLE001 - whatever the library raises, ours is a violation
            with pytest.raises(ConnectionViolationError):
                ours.decode(block)
            return
        assert ours.decode(block).headers == expected


def test_same_bytes_mean_something_else_once_the_table_has_changed() -> None:
    ours = HeaderDecoder(1 << 16)
    ours.decode(b"\x40\x01a\x011")
    assert ours.decode(b"\xbe").headers == ((b"a", b"1"),)
    ours.decode(b"\x40\x01b\x012")
    assert ours.decode(b"\xbe").headers == ((b"b", b"2"),)
    ours.decode(b"\x20")
    with pytest.raises(ConnectionViolationError):
        ours.decode(b"\xbe")


def test_kept_blocks_are_bounded() -> None:
    ours = HeaderDecoder(1 << 16)
    for value in range(1000):
        assert ours.decode(b"\x00\x01a\x03%03d" % value).headers == ((b"a", b"%03d" % value),)
    assert len(ours._kept) <= 64


def test_our_blocks_leave_the_peers_table_alone() -> None:
    decoder = Decoder()
    decoder.max_allowed_table_size = 0
    for prefix, headers in ((NO_DYNAMIC_TABLE, OK), (b"", OK), (b"", (*OK, (b"grpc-message", b"a%20b")))):
        assert tuple(decoder.decode(prefix + encode(headers), raw=True)) == headers
    assert not decoder.header_table.dynamic_entries


def test_request_keeps_the_order_of_its_fields() -> None:
    twice = (*POST, (b"a", b"2"), (b"a", b"1"))
    decoded = HeaderDecoder(1 << 16).decode(encode(twice))
    assert (decoded.headers, decoded.is_request, decoded.is_trailers) == (twice, True, False)
