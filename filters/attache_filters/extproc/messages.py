"""Builds the messages that answer Envoy, and reads its header maps. Pure functions; when each is legal is `session`'s.

In `FULL_DUPLEX_STREAMED` the only legal body mutation is a `StreamedBodyResponse` of at most 64 KiB. Header values are
bytes on the wire (`raw_value`) and text here: UTF-8, with any other byte kept by surrogate escapes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attache_filters.extproc.wire import ext_proc_pb2 as pb

MAX_BODY_CHUNK_BYTES = 62_000
"""Length of one streamed body message; Envoys cut or refuse beyond 64 KiB, framing included."""

_OVERWRITE = pb.HeaderValueOption.OVERWRITE_IF_EXISTS_OR_ADD


def read_headers(header_map: pb.HeaderMap) -> dict[str, str]:
    """Names in lower case, pseudo-headers included; repeated headers are joined with ", " (cookies with "; ")."""
    headers: dict[str, str] = {}
    for header in header_map.headers:
        value = header.raw_value.decode("utf-8", "surrogateescape") if header.raw_value else header.value
        name = header.key.lower()
        earlier = headers.get(name)
        headers[name] = value if earlier is None else f"{earlier}{'; ' if name == 'cookie' else ', '}{value}"
    return headers


def mutation(old: Mapping[str, str], new: Mapping[str, str]) -> pb.HeaderMutation:
    """The difference: sets what is new or changed, removes what is gone. Pseudo-headers are never removed."""
    changed = {name: value for name, value in new.items() if old.get(name) != value}
    gone = [name for name in old if name not in new and not name.startswith(":")]
    return pb.HeaderMutation(set_headers=[_option(name, value) for name, value in changed.items()], remove_headers=gone)


def set_content_length(changes: pb.HeaderMutation, length: int) -> None:
    """Add the length of the body that follows; also when it is as before, because Envoy forgets the one that came."""
    gone = [name for name in changes.remove_headers if name != "content-length"]
    changes.remove_headers[:] = gone
    changes.set_headers.append(_option("content-length", str(length)))


def body_chunks(body: bytes, *, end: bool) -> Iterator[pb.StreamedBodyResponse]:
    """`body` in legal pieces; the last one ends the stream if `end`, and is then sent even when it is empty."""
    last = max(len(body) - 1, 0) // MAX_BODY_CHUNK_BYTES
    if not body and not end:
        return
    for index in range(last + 1):
        piece = body[index * MAX_BODY_CHUNK_BYTES : (index + 1) * MAX_BODY_CHUNK_BYTES]
        yield pb.StreamedBodyResponse(body=piece, end_of_stream=end and index == last)


def headers_response(changes: pb.HeaderMutation, *, clear_route_cache: bool = False) -> pb.HeadersResponse:
    """Go on with changed headers."""
    common = pb.CommonResponse(header_mutation=changes, clear_route_cache=clear_route_cache)
    return pb.HeadersResponse(response=common)


def replace_response(changes: pb.HeaderMutation, body: bytes, *, clear_route_cache: bool = False) -> pb.HeadersResponse:
    """Go on with changed headers and a body where there was none: what came without a body gets one this way only."""
    common = pb.CommonResponse(
        status=pb.CommonResponse.CONTINUE_AND_REPLACE,
        header_mutation=changes,
        body_mutation=pb.BodyMutation(body=body),
        clear_route_cache=clear_route_cache,
    )
    return pb.HeadersResponse(response=common)


def body_response(chunk: pb.StreamedBodyResponse) -> pb.BodyResponse:
    """One piece of body."""
    return pb.BodyResponse(response=pb.CommonResponse(body_mutation=pb.BodyMutation(streamed_response=chunk)))


def immediate_response(status: int, headers: Mapping[str, str], body: bytes) -> pb.ProcessingResponse:
    """A whole reply made here."""
    return pb.ProcessingResponse(
        immediate_response=pb.ImmediateResponse(
            status=pb.HttpStatus(code=status),
            headers=pb.HeaderMutation(set_headers=[_option(name, value) for name, value in headers.items()]),
            body=body,
        )
    )


def streamed_reply_headers(status: int, headers: Mapping[str, str]) -> pb.ProcessingResponse:
    """The head of a streamed reply made here."""
    fields = {":status": str(status), **headers}
    header_map = pb.HeaderMap(headers=[_value(name, value) for name, value in fields.items()])
    reply = pb.StreamedImmediateResponse(headers_response=pb.HttpHeaders(headers=header_map))
    return pb.ProcessingResponse(streamed_immediate_response=reply)


def streamed_reply_body(chunk: pb.StreamedBodyResponse) -> pb.ProcessingResponse:
    """One piece of body of a streamed reply made here."""
    return pb.ProcessingResponse(streamed_immediate_response=pb.StreamedImmediateResponse(body_response=chunk))


def _option(name: str, value: str) -> pb.HeaderValueOption:
    return pb.HeaderValueOption(header=_value(name, value), append_action=_OVERWRITE, keep_empty_value=True)


def _value(name: str, value: str) -> pb.HeaderValue:
    return pb.HeaderValue(key=name, raw_value=value.encode("utf-8", "surrogateescape"))
