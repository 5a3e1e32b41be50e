"""A segment host without Envoy or gRPC: a test plays Envoy, message by message."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from attache_core.events.event import Event
from attache_core.turn.below import Below
from attache_core.types.turn import TurnRequest
from attache_filters.extproc.host import SegmentHost
from attache_filters.extproc.segment import Segment
from attache_filters.extproc.stream_end import StreamEndedError
from attache_filters.extproc.wire import ext_proc_pb2 as pb
from attache_filters.sdk.filter import FilterConfig, HttpFilter, RequestFilter, Services, TurnFilter
from attache_filters.sdk.http import HttpBelow, HttpRequest, HttpResponse
from filters.extproc.to_envoy import Said, check_order, said

WAIT_S = 5

SERVICES: Services = Services(store=None, mcp=None)  # type: ignore[arg-type]  # these filters use neither


class FakeEnvoy:
    """Envoy's end of one stream, and the `MessageStream` that the host gets."""

    def __init__(self) -> None:
        self._to_host: asyncio.Queue[pb.ProcessingRequest | None] = asyncio.Queue()
        self._from_host: asyncio.Queue[pb.ProcessingResponse] = asyncio.Queue()
        self.sent: list[pb.ProcessingResponse] = []
        self._reads: asyncio.Queue[None] = asyncio.Queue()
        self.broken = False

    async def read(self) -> pb.ProcessingRequest | None:
        message = await self._to_host.get()
        self._reads.put_nowait(None)
        return message

    async def write(self, message: pb.ProcessingResponse) -> None:
        if self.broken:
            raise StreamEndedError("a message was written")
        self.sent.append(message)
        self._from_host.put_nowait(message)

    def says(self, *messages: pb.ProcessingRequest) -> None:
        """Envoy sends these."""
        for message in messages:
            self._to_host.put_nowait(message)

    def closes(self) -> None:
        """Envoy half-closes the stream."""
        self._to_host.put_nowait(None)

    async def gets(self, count: int) -> list[Said]:
        """The next `count` answers."""
        async with asyncio.timeout(WAIT_S):
            return [said(await self._from_host.get()) for _ in range(count)]

    async def gets_response(self) -> tuple[Said, bytes]:
        """The head of the response or reply, and its whole body."""
        async with asyncio.timeout(WAIT_S):
            head = said(await self._from_host.get())
            if head[0] == "immediate_response":
                return head, b""
            body = b""
            while True:
                _, data, end = said(await self._from_host.get())
                assert isinstance(data, bytes)
                body += data
                if end:
                    return head, body

    async def reads(self, count: int) -> None:
        """Wait until the host has read `count` messages more."""
        async with asyncio.timeout(WAIT_S):
            for _ in range(count):
                await self._reads.get()

    @property
    def unread(self) -> int:
        """How many of its messages the host has not read."""
        return self._to_host.qsize()


@asynccontextmanager
async def hosted(segment: Segment) -> AsyncIterator[FakeEnvoy]:
    """A host that serves `segment` to a fake Envoy, which closes the stream at the end of the block."""
    envoy = FakeEnvoy()
    async with asyncio.timeout(2 * WAIT_S), asyncio.TaskGroup() as tasks:
        tasks.create_task(SegmentHost(segment, envoy).run())
        yield envoy
        envoy.closes()
    check_order(envoy.sent)


TurnRun = Callable[[TurnRequest, Below], AsyncIterator[Event]]
RequestRun = Callable[[TurnRequest], Awaitable[TurnRequest]]
HttpRun = Callable[[HttpRequest, HttpBelow], Awaitable[HttpResponse]]


def emitting(*events: Event, then: Exception | None = None) -> TurnRun:
    """Yields these, whatever is below, and fails after them if `then`."""

    async def run(_: TurnRequest, __: Below) -> AsyncIterator[Event]:
        for event in events:
            yield event
        if then is not None:
            raise then

    return run


async def breaking_body(*chunks: bytes) -> AsyncIterator[bytes]:
    """A body that fails after these chunks."""
    for chunk in chunks:
        yield chunk
    raise OSError("gone")


def turn_filter(run: TurnRun) -> TurnFilter[FilterConfig]:
    """A function as a filter."""

    class Function(TurnFilter[FilterConfig]):
        def __call__(self, turn: TurnRequest, below: Below) -> AsyncIterator[Event]:
            return run(turn, below)

    return Function(FilterConfig(), SERVICES)


def request_filter(run: RequestRun) -> RequestFilter[FilterConfig]:
    """A function as a filter."""

    class Function(RequestFilter[FilterConfig]):
        async def request(self, turn: TurnRequest) -> TurnRequest:
            return await run(turn)

    return Function(FilterConfig(), SERVICES)


def http_filter(run: HttpRun) -> HttpFilter[FilterConfig]:
    """A function as a filter."""

    class Function(HttpFilter[FilterConfig]):
        async def __call__(self, request: HttpRequest, below: HttpBelow) -> HttpResponse:
            return await run(request, below)

    return Function(FilterConfig(), SERVICES)


def segment(*filters: Any, **settings: Any) -> Segment:
    """A segment of these filters, or functions of turns."""
    return Segment("test", tuple(filters), **settings)


async def pass_http(request: HttpRequest, below: HttpBelow) -> HttpResponse:
    """Steps aside."""
    return await below(request)


def pass_turn(turn: TurnRequest, below: Below) -> AsyncIterator[Event]:
    """Steps aside."""
    return below(turn)
