"""An inference server that keeps what it was sent, byte by byte, and answers with one response of the API's own.

A request that has `stream` set gets the same response as a stream of events.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from attache_core.json_codec import decode, encode
from attache_core.testing.model_script import Message, Said
from attache_core.testing.model_wire.openai import OpenAiWire

MARK = "x-recorded"
"""A header of its answers. A turn's answer has none of the server's headers, so it tells an answer that came unread."""

_WIRE = OpenAiWire({"model": "m"}, Said((Message(("Recor", "ded.")),)))
ANSWER = encode(_WIRE.response())
STREAM = b"".join(b"event: %s\ndata: %s\n\n" % (each["type"].encode(), encode(each)) for each in _WIRE.events())


def _http(content_type: bytes, body: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: %s\r\n%s: yes\r\nx-request-id: req_theirs\r\ncontent-length: %d\r\n\r\n"
    return head % (content_type, MARK.encode(), len(body)) + body


def _answer_to(body: bytes) -> bytes:
    streams = body and decode(body).get("stream") is True
    return _http(b"text/event-stream", STREAM) if streams else _http(b"application/json", ANSWER)


@dataclass(frozen=True)
class Recorded:
    """A request as it arrived; names of headers in lower case, without those that say how long the body is."""

    request_line: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


@dataclass
class RecordingServer:
    """Its URL, and what it was sent since `take`."""

    url: str = ""
    requests: list[Recorded] = field(default_factory=list)

    def take(self) -> list[Recorded]:
        """What arrived since the last call."""
        taken, self.requests = self.requests, []
        return taken

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
                named = [(name.lower(), value) for name, value in (line.split(": ", 1) for line in head[1:])]
                body = await _body(reader, dict(named))
                kept = sorted(pair for pair in named if pair[0] not in ("content-length", "transfer-encoding"))
                self.requests.append(Recorded(head[0], tuple(kept), body))
                writer.write(_answer_to(body))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


async def _body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding") != "chunked":
        return await reader.readexactly(int(headers.get("content-length", "0")))
    body = b""
    while size := int(await reader.readline(), 16):
        body += await reader.readexactly(size)
        await reader.readline()
    await reader.readline()
    return body


@asynccontextmanager
async def recording_server() -> AsyncIterator[RecordingServer]:
    recorder = RecordingServer()
    async with await asyncio.start_server(recorder.serve, "127.0.0.1", 0) as server:
        recorder.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield recorder
        server.close()
