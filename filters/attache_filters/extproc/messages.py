"""Builds the messages that answer Envoy, and reads its header maps. Pure functions; when each is legal is `session`'s.

In `FULL_DUPLEX_STREAMED` the only legal body mutation is a `StreamedBodyResponse` of at most 64 KiB. Header values are
bytes on the wire (`raw_value`) and text here: UTF-8, with any other byte kept by surrogate escapes.

Messages are filled in place: one that is given to another is copied with all that is in it, which for a piece of body
inside four others takes a hundred times as long.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from attache_filters.extproc.wire import ext_proc_pb2 as pb

MAX_BODY_CHUNK_BYTES = 62_000
"""Length of one streamed body message; Envoys cut or refuse beyond 64 KiB, framing included."""

_OVERWRITE = pb.HeaderValueOption.OVERWRITE_IF_EXISTS_OR_ADD

HeadersKind = Literal["request_headers", "response_headers"]
BodyKind = Literal["request_body", "response_body"]
"""Which message of Envoy's is answered."""


class HeaderChanges(NamedTuple):
    """What is to become of headers: which are set, and which are removed."""

    set: Mapping[str, str]
    removed: list[str]


def read_headers(header_map: pb.HeaderMap) -> dict[str, str]:
    """Names in lower case, pseudo-headers included; repeated headers are joined with ", " (cookies with "; ")."""
    headers: dict[str, str] = {}
    for header in header_map.headers:
        value = header.raw_value.decode("utf-8", "surrogateescape") if header.raw_value else header.value
        name = header.key.lower()
        earlier = headers.get(name)
        headers[name] = value if earlier is None else f"{earlier}{'; ' if name == 'cookie' else ', '}{value}"
    return headers


def header_changes(old: Mapping[str, str], new: Mapping[str, str]) -> HeaderChanges:
    """The difference: sets what is new or changed, removes what is gone. Pseudo-headers are never removed."""
    changed = {name: value for name, value in new.items() if old.get(name) != value}
    return HeaderChanges(changed, [name for name in old if name not in new and not name.startswith(":")])


def with_content_length(changes: HeaderChanges, length: int) -> HeaderChanges:
    """With the length of the body that follows; also when it is as before, because Envoy forgets the one that came."""
    gone = [name for name in changes.removed if name != "content-length"]
    return HeaderChanges({**changes.set, "content-length": str(length)}, gone)


def headers_answer(
    kind: HeadersKind, changes: HeaderChanges, *, clear_route_cache: bool = False
) -> pb.ProcessingResponse:
    """Go on with changed headers."""
    message = pb.ProcessingResponse()
    _change(_common_of_headers(message, kind), changes, clear_route_cache=clear_route_cache)
    return message


def replace_answer(
    kind: HeadersKind, changes: HeaderChanges, body: bytes, *, clear_route_cache: bool = False
) -> pb.ProcessingResponse:
    """Go on with changed headers and a body where there was none: what came without a body gets one this way only."""
    message = headers_answer(kind, changes, clear_route_cache=clear_route_cache)
    common = _common_of_headers(message, kind)
    common.status = pb.CommonResponse.CONTINUE_AND_REPLACE
    common.body_mutation.body = body
    return message


def body_answers(kind: BodyKind, body: bytes, *, end: bool) -> Iterator[pb.ProcessingResponse]:
    """`body` in legal pieces; the last one ends the stream if `end`, and is then sent even when it is empty."""
    for piece, last in _pieces(body, end=end):
        message = pb.ProcessingResponse()
        common = message.request_body.response if kind == "request_body" else message.response_body.response
        _fill(common.body_mutation.streamed_response, piece, last=last)
        yield message


def immediate_response(status: int, headers: Mapping[str, str], body: bytes) -> pb.ProcessingResponse:
    """A whole reply made here."""
    message = pb.ProcessingResponse()
    reply = message.immediate_response
    reply.status.code = status
    _set_headers(reply.headers, headers)
    reply.body = body
    return message


def streamed_reply_headers(status: int, headers: Mapping[str, str]) -> pb.ProcessingResponse:
    """The head of a streamed reply made here."""
    message = pb.ProcessingResponse()
    fields = message.streamed_immediate_response.headers_response.headers.headers
    for name, value in {":status": str(status), **headers}.items():
        _write(fields.add(), name, value)
    return message


def streamed_reply_body(body: bytes, *, end: bool) -> Iterator[pb.ProcessingResponse]:
    """Body of a streamed reply made here; see `body_answers`."""
    for piece, last in _pieces(body, end=end):
        message = pb.ProcessingResponse()
        _fill(message.streamed_immediate_response.body_response, piece, last=last)
        yield message


def _pieces(body: bytes, *, end: bool) -> Iterator[tuple[bytes, bool]]:
    last = max(len(body) - 1, 0) // MAX_BODY_CHUNK_BYTES
    if not body and not end:
        return
    for index in range(last + 1):
        yield body[index * MAX_BODY_CHUNK_BYTES : (index + 1) * MAX_BODY_CHUNK_BYTES], end and index == last


def _fill(streamed: pb.StreamedBodyResponse, piece: bytes, *, last: bool) -> None:
    streamed.body = piece
    streamed.end_of_stream = last
    streamed.SetInParent()


def _common_of_headers(message: pb.ProcessingResponse, kind: HeadersKind) -> pb.CommonResponse:
    return message.request_headers.response if kind == "request_headers" else message.response_headers.response


def _change(common: pb.CommonResponse, changes: HeaderChanges, *, clear_route_cache: bool) -> None:
    _set_headers(common.header_mutation, changes.set)
    common.header_mutation.remove_headers.extend(changes.removed)
    common.clear_route_cache = clear_route_cache


def _set_headers(mutation: pb.HeaderMutation, headers: Mapping[str, str]) -> None:
    mutation.SetInParent()
    for name, value in headers.items():
        option = mutation.set_headers.add(append_action=_OVERWRITE, keep_empty_value=True)
        _write(option.header, name, value)


def _write(header: pb.HeaderValue, name: str, value: str) -> None:
    header.key = name
    header.raw_value = value.encode("utf-8", "surrogateescape")
