"""HTTP byte by byte: a server that answers with what a test gives it, and a client that sends what no library would."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from attache_core.json_codec import decode

WAIT_S = 5.0


@dataclass
class RawServer:
    """Answers every request with `answer` and closes the connection.

    Attributes:
        asked: the headers of the last request, names in lower case.
        begun: set when a request has been read.
        may_answer: answers wait for it.
    """

    url: str = ""
    answer: bytes = b""
    asked: dict[str, str] = field(default_factory=dict)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)

    def reset(self) -> None:
        """Answer at once, with nothing."""
        self.answer = b""
        self.asked = {}
        self.begun.clear()
        self.may_answer.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.asked = dict(_fields(head))
            await reader.readexactly(int(self.asked.get("content-length", "0")))
            if self.asked.get("transfer-encoding") == "chunked":
                await _body(reader, {})
            self.begun.set()
            await self.may_answer.wait()
            writer.write(self.answer)
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def running_raw_server() -> AsyncIterator[RawServer]:
    raw = RawServer()
    async with await asyncio.start_server(raw.serve, "127.0.0.1", 0) as server:
        raw.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield raw
        server.close()


def http_answer(status: int, headers: Mapping[str, str], body: bytes) -> bytes:
    """An answer on the wire, with its length."""
    lines = [f"HTTP/1.1 {status} Status", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, f"content-length: {len(body)}", "", ""]).encode() + body


@dataclass(frozen=True)
class RawAnswer:
    """What came back: header names in lower case, the body as JSON."""

    status: int
    headers: dict[str, str]
    body: Any


async def exchange(port: int, request: bytes) -> RawAnswer:
    """Send these bytes, and read one answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(WAIT_S):
            writer.write(request)
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            headers = dict(_fields(head))
            body = await _body(reader, headers)
    finally:
        writer.close()
    return RawAnswer(int(head.split()[1]), headers, decode(body))


async def _body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    if "content-length" in headers:
        return await reader.readexactly(int(headers["content-length"]))
    body = b""
    while size := int(await reader.readuntil(b"\r\n"), 16):
        body += (await reader.readexactly(size + 2))[:-2]
    return body


def _fields(head: str) -> list[tuple[str, str]]:
    lines = (line.partition(":") for line in head.split("\r\n")[1:] if line)
    return [(name.lower(), value.strip()) for name, _, value in lines]
