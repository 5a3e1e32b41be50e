"""What an answer under way takes in memory follows its text, however a server cuts that."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator

import pytest

from attache_core.errors import UpstreamError
from attache_core.events.dialects import dialect_for
from attache_core.events.event import Event
from attache_core.events.sequencer import Sequencer
from attache_core.events.watch import StreamWatch
from attache_core.json_codec import Json
from core.events.canonical_stream import check_stream
from core.events.pipeline import counted_ids, in_progress_response, new_accumulator

GUARDS = 5
BROKEN = UpstreamError("It broke.", code="upstream_gone")


class Chain:
    """A round as the inference server's answer goes up through it: a reader, and a guard for each filter."""

    def __init__(self) -> None:
        self.watches = [StreamWatch() for _ in range(GUARDS)]
        self._dialect = dialect_for("auto")
        self._accumulator = new_accumulator()
        self._sequencer = Sequencer(in_progress_response(), make_id=counted_ids())

    def feed(self, payload: Json) -> list[Event]:
        said = [strict for one in self._dialect.read(payload) for strict in self._accumulator.feed(one)]
        events = [event for one in said for event in self._sequencer.emit(one)]
        for event in events:
            for watch in self.watches:
                watch.observe(event)
        return events


def texts(size: int, total: int) -> Iterator[str]:
    return ("".join(chr(0x4E00 + (at + n) % 5000) for n in range(size)) for at in range(0, total, size))


def message(size: int, total: int) -> Iterator[Json]:
    yield {"type": "response.output_item.added", "item": {"type": "message"}, "output_index": 0}
    for text in texts(size, total):
        yield {"type": "response.output_text.delta", "delta": text, "output_index": 0, "content_index": 0}


def blank(size: int, total: int) -> Iterator[Json]:
    for _ in range(0, total, size):
        yield {"type": "response.output_text.delta", "delta": "\u3000" * size, "output_index": 0, "content_index": 0}


def calls(size: int, total: int) -> Iterator[Json]:
    for index in range(8):
        call = {"type": "function_call", "call_id": f"c{index}", "name": "f"}
        yield {"type": "response.output_item.added", "item": call, "output_index": index}
    for at, text in enumerate(texts(size, total)):
        yield {"type": "response.function_call_arguments.delta", "delta": text, "output_index": at % 8}


def retained(payloads: Iterator[Json]) -> int:
    """Bytes that a chain holds after these payloads, and while its answer goes on."""
    chain = Chain()
    gc.collect()
    tracemalloc.start()
    for payload in payloads:
        chain.feed(payload)
    gc.collect()
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return size


@pytest.mark.parametrize("cut", [message, blank, calls])
def test_answer_in_small_deltas_takes_a_few_bytes_for_each_character(cut: Callable[[int, int], Iterator[Json]]) -> None:
    characters = 40_000
    bytes_of_text = 2 * characters * (GUARDS + 2)
    assert retained(cut(2, characters)) < 1.5 * bytes_of_text + 150_000


def test_every_guard_knows_a_text_that_came_in_many_deltas() -> None:
    chain = Chain()
    shown = [event for payload in message(2, 1000) for event in chain.feed(payload)]
    for watch in chain.watches:
        owed = watch.fail(BROKEN)
        check_stream([*shown, *owed])
        assert owed[-1].data["response"]["output"][0]["content"][0]["text"] == "".join(texts(2, 1000))
