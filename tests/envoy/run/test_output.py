"""What a child prints, as lines of bounded length."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attache_envoy.run.output import MAX_LINE_BYTES, lines_of


async def lines_in(*chunks: bytes) -> list[str]:
    stream = asyncio.StreamReader()
    for chunk in chunks:
        stream.feed_data(chunk)
    stream.feed_eof()
    return [line async for line in lines_of(stream)]


@pytest.mark.parametrize(
    ("printed", "lines"),
    [
        (b"", []),
        (b"one\ntwo\n", ["one", "two"]),
        (b"one\n\nunfinished", ["one", "", "unfinished"]),
        (b"\xff\n", ["\ufffd"]),
        (b"x" * MAX_LINE_BYTES + b"\n", ["x" * MAX_LINE_BYTES]),
        (b"x" * 200_000 + b"\nshort\n", ["x" * MAX_LINE_BYTES + " …", "short"]),
    ],
)
async def test_lines_come_out_whole_and_long_ones_cut(printed: bytes, lines: list[str]) -> None:
    assert await lines_in(printed) == lines


@given(st.lists(st.text("ab\n", max_size=2 * MAX_LINE_BYTES), max_size=5))
async def test_any_split_gives_the_same_lines(parts: list[str]) -> None:
    chunks = [part.encode() for part in parts]
    assert await lines_in(*chunks) == await lines_in(b"".join(chunks))
