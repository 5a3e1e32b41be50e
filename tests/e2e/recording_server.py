"""An inference server that keeps what it was sent, byte by byte, and answers with one response of the API's own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from attache_core.json_codec import Json, encode

MARK = "x-recorded"
"""A header of its answers. A turn's answer has none of the server's headers, so it tells an answer that came unread."""

_RESPONSE: Json = {
    "id": "resp_recorded",
    "object": "response",
    "created_at": 1,
    "status": "completed",
    "model": "m",
    "output": [
        {
            "type": "message",
            "id": "msg_recorded",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Recorded.", "annotations": []}],
        }
    ],
}
ANSWER = encode(_RESPONSE)
_HTTP_ANSWER = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n%s: yes\r\nx-request-id: req_theirs\r\n"
    b"content-length: %d\r\n\r\n%s"
) % (MARK.encode(), len(ANSWER), ANSWER)


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
                writer.write(_HTTP_ANSWER)
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
