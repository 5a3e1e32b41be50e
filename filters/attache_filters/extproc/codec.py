"""Turns and events as HTTP, where a segment begins or ends: JSON, server-sent events, and facts in headers.

`encode_turn` and `decode_turn` are each other's inverse, but for response headers, which never go down; and so are
`encode_answer` and `decode_answer`, but for headers: an answer has none of its own. Invariants: errors are HTTP errors
until the first event, and events after it; an answer that is not streamed is its terminal event's response.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from types import MappingProxyType
from urllib.parse import quote

from attache_core import json_codec
from attache_core.errors import AttacheError, UpstreamError, error_body, error_from_body
from attache_core.events.answer_json import answer_object
from attache_core.events.delta_frames import FrameReader
from attache_core.events.delta_run import DeltaRun
from attache_core.events.error_codes import BAD_ANSWER, BROKE_OFF, OVER_LIMIT
from attache_core.events.event import Event, terminal_event
from attache_core.events.event_stream import Batch, batch_pieces, batched, batches
from attache_core.events.sse import encode_event
from attache_core.turn.round import UPSTREAM_REQUEST_ID
from attache_core.types.request import parse_create
from attache_core.types.turn import Facts, TurnRequest
from attache_filters.extproc.headers import (
    CONVERSATION_REVISION,
    EVENT_STREAM_TYPE,
    HISTORY_ITEMS,
    INTERNAL_PREFIX,
    JSON_TYPE,
    RESPONSE_ID,
    STORED,
    TENANT,
    media_type,
    request_headers,
)
from attache_filters.sdk.http import HttpRequest, HttpResponse
from attache_filters.sdk.tenant import tenant_of

MAX_ANSWER_BYTES = 64 * 1024 * 1024
"""Length of a JSON answer, and of one event: either may repeat the output of many rounds."""

MAX_ERROR_BYTES = 64 * 1024
"""Length of an error's body that is looked at."""

ERROR_BODY_TIMEOUT_S = 10.0
"""How long a server may take over the body of its error."""

NO_HEADERS: Mapping[str, str] = MappingProxyType({})

_DONE = b"[DONE]"
_STREAM_HEADERS = {"content-type": f"{EVENT_STREAM_TYPE}; charset=utf-8", "cache-control": "no-cache"}


def decode_turn(request: HttpRequest) -> TurnRequest:
    """A create request as a turn. Raises ClientError: 400, its body is no JSON object; 403, see `tenant_of`."""
    headers = request_headers(request.headers)
    public = {name: value for name, value in headers.items() if not name.startswith(INTERNAL_PREFIX)}
    return TurnRequest(parse_create(request.body), public, _read_facts(headers))


def encode_turn(turn: TurnRequest, *, method: str, path: str) -> HttpRequest:
    """A turn as a create request to `path`; asks for what `stream` says."""
    headers = {
        **turn.headers,
        **_fact_headers(turn.facts),
        "content-type": JSON_TYPE,
        "accept": EVENT_STREAM_TYPE if turn.stream else JSON_TYPE,
    }
    return HttpRequest(method, path, headers, json_codec.encode(turn.body))


async def encode_answer(
    events: AsyncGenerator[Event, None], *, stream: bool, headers: Mapping[str, str] = NO_HEADERS
) -> HttpResponse:
    """Canonical events as a response: server-sent events, or the final response as JSON.

    Returns once the first event is there (streamed) or the last (not streamed), so that an error before it can still
    be an HTTP error. `headers` are what filters want the client told, as they are by then. Closing the body of the
    response closes the events.
    """
    if stream:
        first = await anext(batches(events))
        return HttpResponse(200, {**headers, **_STREAM_HEADERS}, EventStreamBody(first, events))
    last: Event | None = None
    async for event in events:
        last = event
    if last is None or not last.is_terminal:
        raise UpstreamError("The response ended before it was complete.", code=BROKE_OFF)
    return HttpResponse.of_json(200, last.data["response"], headers)


def encode_error(error: AttacheError, headers: Mapping[str, str] = NO_HEADERS) -> HttpResponse:
    """An error as the JSON response of its status, with its headers and what filters want the client told."""
    return HttpResponse.of_json(error.http_status, error_body(error), {**headers, **error.headers})


@batched
async def decode_answer(response: HttpResponse) -> AsyncGenerator[Batch, None]:
    """The events of a response, or the one terminal event that a JSON answer is.

    Events are taken as they come: whether they are canonical is for the filters to say. A stream may end early.

    Raises:
        AttacheError: what an error response (status 400 and above) says.
        UpstreamError: the body is neither JSON nor server-sent events, or over a limit.
    """
    if response.status >= 400:
        raise await _read_error(response)
    if response.headers.get("content-encoding", "identity") != "identity":
        raise UpstreamError("The inference server compressed its answer without being asked to.", code=BAD_ANSWER)
    if media_type(response.headers) != EVENT_STREAM_TYPE:
        yield (await _read_json_answer(response),)
        return
    reader = FrameReader(max_line_bytes=MAX_ANSWER_BYTES)
    async for data in response.body:
        for piece in batch_pieces(data):
            events, failure = _read_events(reader, piece)
            if events:
                yield events
            if failure is not None:
                raise failure
    reader.close()


def _read_events(reader: FrameReader, data: bytes) -> tuple[list[Event], AttacheError | None]:
    """The events that `data` completes, and the failure that ended them, if one did."""
    events: list[Event] = []
    try:
        for frame in reader.feed(data):
            if isinstance(frame, DeltaRun):
                events.append(frame)
            elif frame.data != _DONE:
                payload = answer_object(frame.data)
                events.append(Event(str(payload.get("type") or frame.event or "message"), payload))
    except UpstreamError as failure:
        return events, failure
    return events, None


class EventStreamBody:
    """Events as the bytes of an event stream, one `bytes` for those that came together; `aclose` closes the events."""

    def __init__(self, first: Batch, events: AsyncGenerator[Event, None]) -> None:
        self._first: Batch | None = first
        self._events = events
        self._batches = batches(events)

    def __aiter__(self) -> EventStreamBody:
        return self

    async def __anext__(self) -> bytes:
        if self._first is not None:
            first, self._first = self._first, None
            return _encoded(first)
        return _encoded(await anext(self._batches))

    async def aclose(self) -> None:
        """Nobody wants the rest."""
        await self._events.aclose()


def _encoded(batch: Batch) -> bytes:
    return b"".join(map(encode_event, batch)) if len(batch) > 1 else encode_event(batch[0])


async def gather(body: AsyncIterator[bytes], max_bytes: int) -> tuple[bytes, bool]:
    """What `body` begins with, and whether that is all of it; stops reading once it has more than `max_bytes`."""
    chunks: list[bytes] = []
    size = 0
    async for chunk in body:
        chunks.append(chunk)
        size += len(chunk)
        if size > max_bytes:
            return b"".join(chunks), False
    return b"".join(chunks), True


async def _read_json_answer(response: HttpResponse) -> Event:
    body, complete = await gather(response.body, MAX_ANSWER_BYTES)
    if not complete:
        raise UpstreamError(f"The answer is longer than {MAX_ANSWER_BYTES} bytes.", code=OVER_LIMIT)
    return terminal_event(answer_object(body))


async def _read_error(response: HttpResponse) -> AttacheError:
    kept = {name: value for name, value in response.headers.items() if _belongs_to_error(name)}
    try:
        async with asyncio.timeout(ERROR_BODY_TIMEOUT_S):
            body, complete = await gather(response.body, MAX_ERROR_BYTES)
        said = json_codec.decode(body) if complete else None
    except (TimeoutError, UpstreamError, ValueError):
        said = None
    return error_from_body(response.status, said, kept)


def _belongs_to_error(name: str) -> bool:
    kept = ("retry-after", "retry-after-ms", "x-should-retry", UPSTREAM_REQUEST_ID)
    return name in kept or name.startswith("x-ratelimit-")


def _read_facts(headers: Mapping[str, str]) -> Facts:
    return Facts(
        response_id=headers.get(RESPONSE_ID),
        history_items=_number(headers.get(HISTORY_ITEMS)),
        conversation_revision=_number(headers.get(CONVERSATION_REVISION)),
        tenant=tenant_of(headers),
        stored=headers.get(STORED) == "true",
    )


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None


def _fact_headers(facts: Facts) -> dict[str, str]:
    headers = {TENANT: quote(facts.tenant)}
    if facts.response_id is not None:
        headers[RESPONSE_ID] = facts.response_id
    if facts.history_items is not None:
        headers[HISTORY_ITEMS] = str(facts.history_items)
    if facts.stored:
        headers[STORED] = "true"
    if facts.conversation_revision is not None:
        headers[CONVERSATION_REVISION] = str(facts.conversation_revision)
    return headers
