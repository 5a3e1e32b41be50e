from __future__ import annotations

from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attache_filters.extproc.transport.lean.call_head import Fields, http_refusal, read_head, timeout_s, trailers
from attache_filters.extproc.transport.rpc import RpcError, StatusCode


def test_first_of_repeated_fields_counts() -> None:
    assert read_head(((b"a", b"1"), (b"b", b"2"), (b"a", b"3"))) == {b"a": b"1", b"b": b"2"}


@pytest.mark.parametrize(
    ("method", "content_type", "refusal"),
    [
        (b"POST", b"application/grpc", None),
        (b"POST", b"application/grpc+proto", None),
        (b"POST", b"application/grpc;charset=utf-8", None),
        (b"POST", b"application/grpc+json", ((b":status", b"415"),)),
        (b"POST", b"application/grpc-web", ((b":status", b"415"),)),
        (b"POST", None, ((b":status", b"415"),)),
        (b"GET", b"application/grpc", ((b":status", b"405"), (b"allow", b"POST"))),
    ],
)
def test_what_is_no_grpc_is_answered_with_an_http_status(
    method: bytes, content_type: bytes | None, refusal: Fields | None
) -> None:
    head = {b":method": method, **({} if content_type is None else {b"content-type": content_type})}
    assert http_refusal(head) == refusal


@pytest.mark.parametrize(
    ("text", "seconds"),
    [(None, None), (b"2H", 7200), (b"3M", 180), (b"4S", 4), (b"500m", 0.5), (b"99999999u", 99.999999), (b"0n", 0)],
)
def test_timeout_is_read_in_every_unit(text: bytes | None, seconds: float | None) -> None:
    head = {} if text is None else {b"grpc-timeout": text}
    assert timeout_s(head) == (seconds if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize("text", [b"", b"1", b"S", b"123456789S", b"-1S", b"1s", b"1 S"])
def test_timeout_that_is_none_is_refused(text: bytes) -> None:
    with pytest.raises(RpcError) as refused:
        timeout_s({b"grpc-timeout": text})
    assert refused.value.code is StatusCode.INTERNAL


def test_success_has_no_message() -> None:
    assert trailers(None) == ((b"grpc-status", b"0"),)


@given(st.text(max_size=1000))
def test_message_of_a_status_is_printable_ascii_and_read_back_as_it_was(message: str) -> None:
    (status, (name, value)) = trailers(RpcError(StatusCode.NOT_FOUND, message))
    assert (status, name) == ((b"grpc-status", b"5"), b"grpc-message")
    assert all(0x20 <= byte <= 0x7E for byte in value)
    assert unquote(value.decode("ascii")) == message.encode("utf-8", "replace").decode("utf-8")
