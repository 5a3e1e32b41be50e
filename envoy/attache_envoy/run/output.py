"""What a child process prints, line by line, each line as long as a person would read.

Envoy, for one, quotes a configuration that it refuses as a whole.
"""

from __future__ import annotations

from asyncio import StreamReader
from collections.abc import AsyncIterator

MAX_LINE_BYTES = 400
"""What is kept of one line; ` …` stands for the rest."""

_CHUNK_BYTES = 65_536


async def lines_of(stream: StreamReader) -> AsyncIterator[str]:
    """The lines that a child prints until it ends, without their ends; what is no UTF-8 is replaced."""
    begun = b""
    while chunk := await stream.read(_CHUNK_BYTES):
        *lines, rest = (begun + chunk).split(b"\n")
        for line in lines:
            yield _readable(line)
        begun = rest[: MAX_LINE_BYTES + 1]
    if begun:
        yield _readable(begun)


def _readable(line: bytes) -> str:
    text = line[:MAX_LINE_BYTES].decode(errors="replace")
    return text if len(line) <= MAX_LINE_BYTES else f"{text} …"
