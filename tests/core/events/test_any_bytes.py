"""Anything at all where events should be: a valid stream, or an UpstreamError that says what is wrong, and soon."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attache_core import json_codec
from attache_core.errors import UpstreamError
from attache_core.events.dialects import dialect_for
from attache_core.json_codec import Json
from core.events.canonical_stream import check_stream
from core.events.pipeline import accumulated, read_stream, sequenced

PIECES = [
    b"data: ",
    b"data:",
    b"event: response.completed",
    b"event",
    b"id: 1",
    b"retry: 1",
    b": ping",
    b"\n",
    b"\r",
    b"\r\n",
    b"\n\n",
    b"\xef\xbb\xbf",
    b"\xff",
    b"\xe2\x80\xa8",
    b"[DONE]",
    b"{",
    b"}",
    b'{"type":"response.created","response":{}}',
    b'{"type":"response.output_text.delta","delta":"[DONE]\xe2\x80\xa8"}',
    b'{"type":"error","error":{}}',
    b"[[[[[[[[",
    b"1e999",
    b'{"type":"response.completed","response":{"status":"completed","output":[]}}',
    b'{"error":',
    b"null",
    b"NaN",
    b'"\\ud83d"',
]


def outcome(chunks: list[bytes]) -> object:
    """The client's events, or what the error says."""
    try:
        events = sequenced(accumulated(read_stream(chunks)))
    except UpstreamError as error:
        return (error.http_status, error.code, error.message)
    check_stream(events, joins="anyhow", openai_types=False)
    return events


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=20).map(b"".join) | st.binary(max_size=200), st.data())
def test_any_bytes_are_a_valid_stream_or_a_clear_error_wherever_they_are_cut(
    stream: bytes, data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(stream)))
    whole, cut_up = outcome([stream]), outcome([stream[:cut], stream[cut:]])
    assert cut_up == whole
    if isinstance(whole, tuple):
        assert whole[:2] in ((502, "bad_upstream_response"), (502, "upstream_limit"))


@pytest.mark.parametrize(
    "data",
    [
        b"<html><body>502 Bad Gateway</body></html>",
        b'{"type":"response.crea',
        b'{"type":"response.output_text.delta","delta":"\xff"}',
        gzip.compress(b'{"type":"response.created","response":{}}').replace(b"\n", b" ").replace(b"\r", b" "),
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"9" * 100_000,
        b'{"n":' + b"9" * 100_000 + b"}",
        b"Infinity",
    ],
    ids=[
        "html",
        "cut off",
        "not utf-8",
        "gzip",
        "deep list",
        "deep object",
        "long number",
        "long number within",
        "no number",
    ],
)
def test_data_of_an_event_that_is_garbage_is_502_and_not_repeated(data: bytes) -> None:
    with pytest.raises(UpstreamError) as raised:
        read_stream([b"data: " + data + b"\n\n"])
    assert (raised.value.http_status, raised.value.code) == (502, "bad_upstream_response")
    assert raised.value.message in (
        "The inference server sent what is not JSON.",
        "The inference server sent what is not a JSON object.",
        "The inference server sent what is not an answer of the Responses API.",
    )


def calls(count: int) -> Iterator[Json]:
    for at in range(count):
        item = {"type": "function_call", "call_id": f"c{at}", "name": "f", "id": f"i{at}"}
        yield {"type": "response.output_item.added", "output_index": at, "item": item}


def parts(count: int) -> Iterator[Json]:
    for at in range(count):
        place = {"item_id": "m", "output_index": 0, "content_index": at}
        yield {"type": "response.content_part.added", "part": {"type": "output_text", "text": ""}, **place}


def messages(count: int) -> Iterator[Json]:
    for at in range(count):
        yield {"type": "response.output_item.added", "output_index": at, "item": {"type": "message", "id": f"i{at}"}}


def parts_of_one_item(count: int) -> Iterator[Json]:
    content = [{"type": "refusal", "refusal": ""}, {"type": "output_text", "text": ""}] * (count // 2)
    yield {"type": "response.output_item.done", "output_index": 0, "item": {"type": "message", "content": content}}


@pytest.mark.parametrize("many", [calls, parts, messages, parts_of_one_item])
def test_so_many_empty_things_that_they_fill_the_bound_are_an_error(many: Callable[[int], Iterator[Json]]) -> None:
    """Each costs the same however many are open, or this would take minutes."""
    dialect = dialect_for("auto")
    with pytest.raises(UpstreamError) as raised:
        accumulated(said for payload in many(20_000) for said in dialect.read(payload))
    assert raised.value.code == "upstream_limit"


def test_event_type_is_taken_from_the_json_whatever_its_line_says() -> None:
    delta = {"type": "response.output_text.delta", "delta": "data: [DONE]\n\n"}
    lines = [b"event: response.completed\n", b"", b"event: \n", b"event: error\n"]
    said = [read_stream([line + b"data: " + json_codec.encode(delta) + b"\n\n"]) for line in lines]
    assert said == [said[0]] * len(lines)
    assert len(said[0]) == 1
