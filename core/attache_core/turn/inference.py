"""The bare HTTP to an inference server, for turns that run without Envoy."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx

from attache_core import json_codec
from attache_core.errors import UpstreamError
from attache_core.events.error_codes import BROKE_OFF, UNAVAILABLE
from attache_core.turn.round import UPSTREAM_REQUEST_ID, Send
from attache_core.types.turn import TurnRequest

CONNECT_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    headers: dict[str, str]
    body: AsyncIterator[bytes]


@asynccontextmanager
async def open_inference(base_url: str) -> AsyncIterator[Send]:
    """A `Send` to the server at `base_url` (without `/v1`); answers not read to their end are closed with it."""
    timeout = httpx.Timeout(None, connect=CONNECT_TIMEOUT_S)
    unread: set[httpx.Response] = set()

    async def chunks(response: httpx.Response) -> AsyncIterator[bytes]:
        try:
            async for chunk in response.aiter_bytes():
                yield chunk
        except httpx.TransportError as error:
            raise UpstreamError("The inference server broke off its answer.", code=BROKE_OFF) from error
        finally:
            unread.discard(response)
            await response.aclose()

    async with httpx.AsyncClient(base_url=base_url, timeout=timeout) as client:

        async def send(turn: TurnRequest) -> _Answer:
            content = json_codec.encode(turn.body)
            request = client.build_request("POST", "/v1/responses", content=content, headers=_headers(turn))
            try:
                response = await client.send(request, stream=True)
            except httpx.TransportError as error:
                message = "The inference server is out of reach."
                raise UpstreamError(message, http_status=503, code=UNAVAILABLE) from error
            unread.add(response)
            return _Answer(response.status_code, _answer_headers(response), chunks(response))

        try:
            yield send
        finally:
            for response in tuple(unread):
                await response.aclose()


def _headers(turn: TurnRequest) -> dict[str, str]:
    kept = {name: turn.headers[name] for name in ("authorization", "x-request-id") if name in turn.headers}
    return {**kept, "content-type": "application/json", "accept-encoding": "identity"}


def _answer_headers(response: httpx.Response) -> dict[str, str]:
    headers = dict(response.headers)
    theirs = headers.pop("x-request-id", None)
    return headers if theirs is None else {**headers, UPSTREAM_REQUEST_ID: theirs}
