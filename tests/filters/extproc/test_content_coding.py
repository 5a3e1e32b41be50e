"""Request bodies in content codings: decoded, or refused before they cost memory."""

from __future__ import annotations

import gzip
import random
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import brotli  # type: ignore[import-untyped]  # it ships no types
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from attache_core.errors import ClientError
from attache_filters.extproc.content_coding import MAX_CODINGS, MAX_MEMBERS, SUPPORTED, decode_body

MIB = 1 << 20
LIMIT = 4096
ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "zstd": zstandard.compress,
    "br": brotli.compress,
}
CODINGS = sorted(ENCODERS)


def refused(body: bytes, codings: str, max_bytes: int = LIMIT) -> ClientError:
    with pytest.raises(ClientError) as error:
        decode_body(body, codings, max_bytes)
    return error.value


def said(error: ClientError) -> tuple[int, str | None]:
    return error.http_status, error.code


@settings(max_examples=50, deadline=None)
@given(body=st.binary(max_size=LIMIT), codings=st.lists(st.sampled_from(CODINGS), max_size=MAX_CODINGS))
def test_body_in_any_codings_is_what_was_encoded(body: bytes, codings: list[str]) -> None:
    encoded = body
    for coding in codings:
        encoded = ENCODERS[coding](encoded)

    assert decode_body(encoded, ", ".join(codings), 2 * LIMIT) == body


@pytest.mark.parametrize("codings", ["", "identity", " Identity ", "identity, identity", ","])
def test_body_without_a_coding_is_left_alone(codings: str) -> None:
    assert decode_body(b"{}", codings, LIMIT) == b"{}"


@pytest.mark.parametrize("codings", ["GZIP", " gzip ", "identity, gzip", "gzip,", "x-gzip"])
def test_names_of_codings_are_read_as_http_writes_them(codings: str) -> None:
    assert decode_body(gzip.compress(b"{}"), codings, LIMIT) == b"{}"


@pytest.mark.parametrize("coding", CODINGS)
def test_body_at_the_limit_is_decoded_and_one_byte_more_is_413(coding: str) -> None:
    encode = ENCODERS[coding]

    assert len(decode_body(encode(b"x" * LIMIT), coding, LIMIT)) == LIMIT
    assert said(refused(encode(b"x" * (LIMIT + 1)), coding)) == (413, "request_too_large")


@pytest.mark.parametrize("coding", CODINGS)
def test_bomb_costs_no_more_than_the_limit(coding: str) -> None:
    bomb = ENCODERS[coding](bytes(64 * MIB))
    assert len(bomb) < MIB

    with peak_of_memory() as peak:
        error = refused(bomb, coding, MIB)

    assert said(error) == (413, "request_too_large")
    assert peak() < 8 * MIB


def test_bomb_within_a_bomb_is_413() -> None:
    bomb = zstandard.compress(gzip.compress(bytes(64 * MIB)))

    assert said(refused(bomb, "gzip, zstd", MIB)) == (413, "request_too_large")


@pytest.mark.parametrize("codings", ["compress", "gzip, compress", "gzip;q=1", "zstd\x00", "aws-chunked"])
def test_unknown_coding_is_415_and_names_those_that_are_known(codings: str) -> None:
    error = refused(gzip.compress(b"{}"), codings)

    assert said(error) == (415, "unsupported_content_encoding")
    assert error.message.endswith("send the body as one of gzip, deflate, zstd, br, identity.")
    assert error.headers == {"accept-encoding": ", ".join(SUPPORTED)}


def test_more_codings_than_the_limit_are_415_before_any_is_decoded() -> None:
    assert said(refused(b"", ", ".join(["gzip"] * (MAX_CODINGS + 1)))) == (415, "unsupported_content_encoding")


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: whole[:-1],
        lambda whole: whole[: len(whole) // 2],
        lambda whole: whole + b"junk",
        lambda whole: b"",
        lambda whole: b'{"model": "m"}',
        lambda whole: b"\xff" * 64,
    ],
    ids=["cut at the end", "cut in the middle", "followed by more", "empty", "not encoded", "noise"],
)
def test_damaged_body_is_400(coding: str, damage: Callable[[bytes], bytes]) -> None:
    whole = ENCODERS[coding](b'{"model": "m", "input": "Hello there, what is it like?"}')

    assert said(refused(damage(whole), coding)) == (400, "invalid_content_encoding")


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(["gzip", "zstd"]), st.lists(st.binary(max_size=300), min_size=1, max_size=6))
def test_body_of_several_members_is_decoded_up_to_the_limit(coding: str, members: list[bytes]) -> None:
    encoded, whole = b"".join(map(ENCODERS[coding], members)), b"".join(members)

    assert decode_body(encoded, coding, len(whole)) == whole
    if whole:
        assert said(refused(encoded, coding, len(whole) - 1)) == (413, "request_too_large")


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_body_of_too_many_members_is_400(coding: str) -> None:
    assert said(refused(ENCODERS[coding](b"") * (MAX_MEMBERS + 1), coding)) == (400, "invalid_content_encoding")


def test_zstd_body_of_unknown_length_and_of_many_blocks_is_decoded() -> None:
    encoder = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    data = random.Random(1).randbytes(1_000_000)

    assert decode_body(encoder.compress(data) + encoder.flush(), "zstd", len(data)) == data


def test_zstd_body_that_asks_for_a_large_window_is_400() -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=24, write_content_size=0)
    encoder = zstandard.ZstdCompressor(compression_params=parameters).compressobj()

    assert said(refused(encoder.compress(b"data") + encoder.flush(), "zstd")) == (400, "invalid_content_encoding")


@contextmanager
def peak_of_memory() -> Iterator[Callable[[], int]]:
    """How many bytes Python allocated within the block, at most at one time."""
    tracemalloc.start()
    try:
        yield lambda: tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
