"""HTTP transports that have a judge look at every answer of `…/v1/responses…` while the client reads it.

For httpx, and for httpx2, which the `openai` SDK takes. An answer that is not the API's raises where the client reads
it: at the event of a stream that is wrong, at the end of a JSON body. What the client does not read is not judged.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import httpx2

from attache_core.events.sse import SseDecoder
from attache_core.json_codec import decode
from conformance.judge import Judge, NotConformantError, judge_of_answers

WATCHED_PATH = "/v1/responses"
"""What the path of a watched answer has in it; a gateway file may put anything before and after."""


class WitnessTransport(httpx.AsyncBaseTransport):
    """For `httpx.AsyncClient(transport=…)`."""

    def __init__(self, inner: httpx.AsyncBaseTransport | None = None, judge: Judge | None = None) -> None:
        self._inner = inner or httpx.AsyncHTTPTransport()
        self._judge = judge or judge_of_answers()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self._inner.handle_async_request(request)
        if WATCHED_PATH in request.url.path:
            assert isinstance(response.stream, httpx.AsyncByteStream)
            response.stream = _Watched(response.stream, self._judge, response.status_code, response.headers)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class Witness2Transport(httpx2.AsyncBaseTransport):
    """For `httpx2.AsyncClient(transport=…)`."""

    def __init__(self, inner: httpx2.AsyncBaseTransport | None = None, judge: Judge | None = None) -> None:
        self._inner = inner or httpx2.AsyncHTTPTransport()
        self._judge = judge or judge_of_answers()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._inner.handle_async_request(request)
        if WATCHED_PATH in request.url.path:
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = _Watched(response.stream, self._judge, response.status_code, response.headers)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Watched(httpx.AsyncByteStream, httpx2.AsyncByteStream):
    """The bytes of one answer, unchanged."""

    def __init__(
        self,
        inner: httpx.AsyncByteStream | httpx2.AsyncByteStream,
        judge: Judge,
        status: int,
        headers: httpx.Headers | httpx2.Headers,
    ) -> None:
        self._inner = inner
        self._judge = judge
        self._status = status
        self._content_type = headers.get("content-type", "")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._content_type.startswith("text/event-stream"):
            async for data in self._watched_events():
                yield data
        else:
            async for data in self._watched_body():
                yield data

    async def _watched_events(self) -> AsyncIterator[bytes]:
        decoder = SseDecoder()
        async for data in self._inner:
            for frame in decoder.feed(data):
                event = decode(frame.data)
                self._judge.event(event)
                if frame.event != event["type"]:
                    raise NotConformantError(f"event {event['type']}", [f"its `event:` line is {frame.event!r}"])
            yield data

    async def _watched_body(self) -> AsyncIterator[bytes]:
        body = bytearray()
        async for data in self._inner:
            body += data
            yield data
        if self._content_type != "application/json":
            raise NotConformantError("answer", [f"its content-type is {self._content_type!r}"])
        self._judge.answer(self._status, decode(bytes(body)))

    async def aclose(self) -> None:
        await self._inner.aclose()
