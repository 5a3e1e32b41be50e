"""The load generator: its arithmetic, its counting of events over any cut, its closed loop against a known server."""

from __future__ import annotations

import math

import pytest
from benchmarks.exchange import EventCounter
from benchmarks.load import Load, Measured, percentile, run_load
from hypothesis import given, settings
from hypothesis import strategies as st

from attache_core.json_codec import encode
from attache_core.testing.model_script import http_error, raw
from attache_core.testing.model_server import running_model_server


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [
        ([7.0], 50, 7.0),
        ([7.0], 99, 7.0),
        ([3.0, 1.0, 2.0], 50, 2.0),
        ([4.0, 3.0, 2.0, 1.0], 50, 2.0),
        ([float(value) for value in range(1, 101)], 50, 50.0),
        ([float(value) for value in range(1, 101)], 99, 99.0),
        ([float(value) for value in range(1, 102)], 99, 100.0),
        ([1.0, 2.0], 100, 2.0),
        ([1.0, 2.0], 0, 1.0),
    ],
)
def test_percentile_is_the_nearest_rank(values: list[float], percent: float, expected: float) -> None:
    assert percentile(values, percent) == expected


def test_percentile_of_nothing_is_nan() -> None:
    assert math.isnan(percentile([], 50))


@settings(max_examples=50)
@given(st.lists(st.floats(0, 1000), min_size=1, max_size=50), st.floats(0.1, 100))
def test_percentile_covers_its_share_and_no_smaller_value_does(values: list[float], percent: float) -> None:
    found = percentile(values, percent)
    needed = len(values) * percent / 100
    assert found in values
    assert sum(value <= found for value in values) >= math.floor(needed)
    assert sum(value < found for value in values) < math.ceil(needed) + 1


def test_measured_rates_are_of_the_elapsed_time() -> None:
    measured = Measured([0.1] * 10, [0.1] * 10, events=40, elapsed_s=2.0, failures={})
    assert (measured.requests_per_s, measured.events_per_s) == (5.0, 20.0)


@settings(max_examples=100)
@given(st.integers(0, 6), st.data())
def test_any_cut_of_a_stream_counts_the_same_events(count: int, data: st.DataObject) -> None:
    stream = b"".join(b"event: e%d\ndata: {}\n\n" % number for number in range(count))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    counter = EventCounter()
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        counter.feed(stream[start:end])
    assert counter.count == count


@pytest.mark.parametrize(("model", "stream", "events"), [("bench-20", True, 28), ("bench-20", False, 0)])
async def test_load_counts_requests_and_events_as_the_server_does(model: str, stream: bool, events: int) -> None:
    async with running_model_server(bench=True) as server:
        body = encode({"model": model, "input": "Hi", "stream": stream})
        measured = await run_load(Load(server.url, body, connections=3, duration_s=0.1, min_events=events))
        served = server.request_count
    assert measured.errors == 0
    assert len(measured.latencies_s) == len(measured.first_events_s) == served
    assert measured.events == served * events
    assert all(first <= total for first, total in zip(measured.first_events_s, measured.latencies_s, strict=True))


async def test_load_of_errors_counts_nothing_else() -> None:
    async with running_model_server(lambda _: http_error(503)) as server:
        measured = await run_load(Load(server.url, b'{"input": "Hi"}', connections=2, duration_s=0.05))
        served = server.request_count
    assert (measured.latencies_s, measured.events, measured.failures) == ([], 0, {"503": served})


async def test_load_of_streams_that_lack_events_counts_errors() -> None:
    short = raw(200, {"content-type": "text/event-stream"}, [b"data: {}\n\n"])

    async with running_model_server(lambda _: short) as server:
        load = Load(server.url, b'{"input": "Hi"}', connections=1, duration_s=0.02, min_events=2)
        measured = await run_load(load)
        served = server.request_count
    assert (measured.latencies_s, measured.failures) == ([], {"too few events": served})
