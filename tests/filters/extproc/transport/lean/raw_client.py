"""A client that chooses every byte: frames by the h2 library, over a Unix socket; gRPC by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ConnectionTerminated, DataReceived, ResponseReceived, StreamEnded, StreamReset, TrailersReceived

from filters.extproc.hosting import WAIT_S
from filters.extproc.transport.rpc_client import PROCESS

Fields = dict[str, str]
CHECK = "/grpc.health.v1.Health/Check"


def framed(message: bytes) -> bytes:
    """A message with gRPC's prefix."""
    return b"\0" + len(message).to_bytes(4, "big") + message


@dataclass
class Answered:
    """What has come of one stream's answer: heads (a response's, then its trailers), body, and how it ended."""

    heads: list[Fields] = field(default_factory=list)
    body: bytes = b""
    ended: bool = False
    reset: int | None = None


class RawClient:
    """One connection.

    Attributes:
        answers: by stream.
        gone_away: the error codes of the server's GOAWAYs.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.h2 = H2Connection(H2Configuration(header_encoding="utf-8"))
        self.h2.initiate_connection()
        self.send()
        self.answers: dict[int, Answered] = {}
        self.gone_away: list[int] = []

    def send(self, more: bytes = b"") -> None:
        """Send what the h2 library has to send, and any other bytes after it."""
        self._writer.write(self.h2.data_to_send() + more)

    def open(self, path: str = PROCESS, *, segment: str = "s", **changed: str) -> int:
        """Begin a stream; `changed` are fields that are other than a client of gRPC sends, by `method` or `a_b`."""
        fields = {":method": "POST", ":path": path, ":scheme": "http", ":authority": "x", "te": "trailers"}
        fields |= {"content-type": "application/grpc", "x-attache-segment": segment}
        fields |= {(f":{name}" if name == "method" else name.replace("_", "-")): text for name, text in changed.items()}
        stream_id = self.h2.get_next_available_stream_id()
        self.answers[stream_id] = Answered()
        self.h2.send_headers(stream_id, list(fields.items()))
        self.send()
        return stream_id

    def write(self, stream_id: int, data: bytes, *, end: bool = False) -> None:
        """One DATA frame."""
        self.h2.send_data(stream_id, data, end_stream=end)
        self.send()

    async def ends(self, stream_id: int) -> Answered:
        """The answer of a stream, once it has ended."""
        while not (self.answers[stream_id].ended or self.answers[stream_id].reset is not None):
            assert await self.receive(), "the connection ended"
        return self.answers[stream_id]

    async def hears(self, stream_id: int) -> None:
        """Return once a body has begun to come."""
        while not self.answers[stream_id].body:
            assert await self.receive(), "the connection ended"

    async def receive(self) -> bool:
        """Take what comes next; False at the connection's end. Every byte of a body is given credit for."""
        async with asyncio.timeout(WAIT_S):
            data = await self._reader.read(1 << 16)
        for event in self.h2.receive_data(data):
            match event:
                case ResponseReceived() | TrailersReceived():
                    assert event.stream_id is not None
                    self.answers[event.stream_id].heads.append(dict(event.headers or ()))  # type: ignore[arg-type]
                case DataReceived():
                    self.answers[event.stream_id].body += event.data
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                case StreamEnded():
                    self.answers[event.stream_id].ended = True
                case StreamReset():
                    self.answers[event.stream_id].reset = int(event.error_code or 0)
                case ConnectionTerminated():
                    self.gone_away.append(int(event.error_code or 0))
        self.send()
        return bool(data)


@asynccontextmanager
async def raw_client(address: str) -> AsyncIterator[RawClient]:
    """A connection to a Unix socket."""
    reader, writer = await asyncio.open_unix_connection(Path(address.removeprefix("unix:")))
    try:
        yield RawClient(reader, writer)
    finally:
        writer.close()
