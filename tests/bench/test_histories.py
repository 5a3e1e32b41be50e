"""Turns after histories: what is compared has as many items, and what is stored is counted to the byte."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from benchmarks.histories import WARMUP, History, histories_of, measure_histories
from benchmarks.plan import Plan
from benchmarks.stored_bytes import stored_bytes
from benchmarks.targets import Sizes, Target, running_target
from benchmarks.times import Times

from attache_core.testing.model_server import running_model_server

PLAN = Plan(
    rounds=1,
    duration_s=0.05,
    warmup_s=0.01,
    connections=(1,),
    depths=(1, 3),
    conversation_items=(10, 25),
    history_repetitions=1,
)


def test_histories_are_every_depth_unstored_and_stored_then_every_conversation() -> None:
    assert histories_of(PLAN) == [
        History("chain", 1, store=False),
        History("chain", 3, store=False),
        History("chain", 1, store=True),
        History("chain", 3, store=True),
        History("conversation", 10, store=True),
        History("conversation", 25, store=True),
    ]


@pytest.mark.e2e
async def test_turns_after_histories_send_the_model_as_many_items_as_the_turns_beside_them() -> None:
    async with asyncio.timeout(120), running_model_server() as server:
        model = Target("direct", server.url, 0)
        async with running_target("fused", model, Sizes(envoy_threads=1, workers=1)) as fused:
            result = await measure_histories(model, [fused], PLAN)
    sent = [len(request.body["input"]) for request in server.requests[3:]]
    direct, through = sent[::2], sent[1::2]
    assert direct == [3, 7, 3, 7, 11, 26] * (WARMUP + 1)
    # The conversation of 25 items takes one more turn before it is too long.
    assert through == [3, 7, 3, 7, 11, 26, 3, 7, 3, 7, 11, 28] * ((WARMUP + 1) // 2)
    measured = [(turn.target, turn.history, turn.errors) for turn in result.turns]
    assert measured == [("fused", history, 0) for history in histories_of(PLAN)]
    (stored,) = result.stored
    assert (result.chain_turns, stored.target, stored.first_bytes, stored.last_bytes > 500) == (
        *(3, "fused"),
        *(stored.last_bytes, True),
    )


def test_stored_bytes_are_those_of_all_values_in_all_tables(tmp_path: Path) -> None:
    database = tmp_path / "some.db"
    with closing(sqlite3.connect(database)) as connection:
        connection.execute('CREATE TABLE "first table" (text TEXT, data BLOB)')
        connection.execute("CREATE TABLE second (number INTEGER)")
        connection.execute("INSERT INTO \"first table\" VALUES ('°C', x'000102'), (NULL, x'')")
        connection.execute("INSERT INTO second VALUES (1234)")
        connection.commit()
        assert stored_bytes(database) == 3 + 3 + 4


def test_added_time_is_taken_within_each_repetition() -> None:
    times = Times({"turn": [5.0, 9.0, 6.0], "alone": [1.0, 7.0, 3.0]}, {})
    assert (times.added("turn", "alone"), times.added_at_best("turn", "alone")) == (3.0, 4.0)
