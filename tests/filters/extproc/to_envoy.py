"""What our answers say, in short, and whether their order is one that Envoy takes; for tests."""

from __future__ import annotations

from collections.abc import Iterable

from attache_filters.extproc.wire import ext_proc_pb2 as pb

Said = tuple[object, ...]


def said(message: pb.ProcessingResponse) -> Said:
    """One answer: its kind, then what it carries (changed and removed headers; body and end)."""
    kind = message.WhichOneof("response")
    assert kind is not None
    match kind:
        case "request_headers" | "response_headers":
            common = getattr(message, kind).response
            changes = common.header_mutation
            extra = (common.body_mutation.body,) if common.status == pb.CommonResponse.CONTINUE_AND_REPLACE else ()
            return (kind, _changed(changes), sorted(changes.remove_headers), *extra)
        case "request_body" | "response_body":
            chunk = getattr(message, kind).response.body_mutation.streamed_response
            return (kind, chunk.body, chunk.end_of_stream)
        case "immediate_response":
            reply = message.immediate_response
            return (kind, reply.status.code, _changed(reply.headers), reply.body)
        case "streamed_immediate_response":
            return _said_streamed(message.streamed_immediate_response)
        case _:
            return (kind,)


def said_all(messages: Iterable[pb.ProcessingResponse]) -> list[Said]:
    """See `said`."""
    return [said(message) for message in messages]


def check_order(messages: Iterable[pb.ProcessingResponse]) -> None:
    """Headers, then body, then one end, request before response; at most 64 KiB in a piece; one kind of reply."""
    steps: dict[str, list[str]] = {"request": [], "response": [], "reply": []}
    for message in messages:
        kind, *what = said(message)
        assert isinstance(kind, str)
        side = "reply" if "immediate" in kind or kind.startswith("reply") else kind.partition("_")[0]
        steps[side].append(_step(kind, what))
        assert not (side == "request" and (steps["response"] or steps["reply"]))
    for side, taken in steps.items():
        assert "".join(taken) in _legal(taken), (side, taken)
    assert not (steps["response"] and steps["reply"])


def _step(kind: str, what: list[object]) -> str:
    if kind.endswith("trailers"):
        return "t"
    if kind == "immediate_response":
        return "i"
    if kind.endswith("headers"):
        return "r" if len(what) == 3 else "h"
    assert isinstance(what[0], bytes)
    assert len(what[0]) < 65_536
    return "e" if what[1] else "b"


def _legal(taken: list[str]) -> set[str]:
    bodies = taken.count("b")
    full = "h" + "b" * bodies
    return {"", "i", "r", full, full + "e", full + "t"}


def _said_streamed(reply: pb.StreamedImmediateResponse) -> Said:
    match reply.WhichOneof("response"):
        case "headers_response":
            headers = {each.key: each.raw_value.decode() for each in reply.headers_response.headers.headers}
            return ("reply_headers", headers, [])
        case _:
            return ("reply_body", reply.body_response.body, reply.body_response.end_of_stream)


def _changed(changes: pb.HeaderMutation) -> dict[str, str]:
    return {option.header.key: option.header.raw_value.decode() for option in changes.set_headers}
