"""Streams at a model's speed: how late a delta is, over any cut of its bytes, and what became of each stream."""

from __future__ import annotations

from benchmarks.paced import measure_paced
from benchmarks.streams import Delta, DeltaReader, Streams
from benchmarks.targets import Target
from hypothesis import given, settings
from hypothesis import strategies as st

from attache_core.json_codec import encode
from attache_core.testing.model_script import http_error
from attache_core.testing.model_server import running_model_server

EVENTS = (
    b'event: response.created\ndata: {"type":"response.created"}\n\n',
    b'event: response.output_text.delta\ndata: {"delta":"0000000000000100 ","logprobs":[]}\n\n',
    b'event: response.output_text.delta\ndata: {"delta": "0000000000000250 "}\n\n',
    b'event: response.output_text.done\ndata: {"text":"0000000000000100 0000000000000250 "}\n\n',
)


@settings(max_examples=100)
@given(st.data())
def test_delta_is_as_late_as_the_bytes_that_complete_its_event(data: st.DataObject) -> None:
    stream = b"".join(EVENTS)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    reader = DeltaReader()
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        reader.feed(stream[start:end], 1000 + end)
    ends = [len(b"".join(EVENTS[:count])) for count in (2, 3)]
    came = [1000 + next(end for end in (*cuts, len(stream)) if end >= needed) for needed in ends]
    assert reader.deltas == [Delta(100, came[0] - 100), Delta(250, came[1] - 250)]


async def test_streams_begin_together_and_each_delta_of_each_is_read() -> None:
    async with running_model_server(bench=True) as server:
        body = encode({"model": "bench-5@200", "input": "Hi", "stream": True})
        streams = Streams(server.url, body, 3)
        await streams.begin(0.01, 5)
        await streams.end(5)
    assert ([len(reader.deltas) for reader in streams.readers], streams.failures) == ([5, 5, 5], {})
    assert all(0 <= delta.delay_us < 5_000_000 for reader in streams.readers for delta in reader.deltas)


async def test_streams_that_fail_or_do_not_end_are_told_apart() -> None:
    async with running_model_server(lambda _: http_error(503), bench=True) as server:
        refused = Streams(server.url, encode({"model": "other", "input": "Hi", "stream": True}), 2)
        await refused.begin(0.01, 5)
        await refused.end(5)
        slow = Streams(server.url, encode({"model": "bench-5@1", "input": "Hi", "stream": True}), 2)
        await slow.begin(0.01, 5)
        await slow.end(0.01)
    assert (refused.failures, slow.failures) == ({"503": 2}, {"late": 2})


async def test_paced_streams_of_the_model_server_itself_cost_no_gateway() -> None:
    async with running_model_server(bench=True) as server:
        model = Target("direct", server.url, 0)
        result = await measure_paced(model, model, 2, 0.2)
    assert (result.streams, result.store, result.target_cores, result.failures) == (2, False, 0.0, {})
    assert result.events_per_s > 0
    assert 0 <= result.delay_p50_ms <= result.delay_p99_ms
