"""Responses that are kept for a time only: on every store alike, in bounded transactions, by one process at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from sqlalchemy import create_engine, text

from attache_core.errors import StoreError
from attache_core.storage import Store
from attache_core.storage.engine import open_store
from attache_core.storage.expiry import MAX_EXPIRED_BYTES, MAX_EXPIRED_TURNS
from attache_core.storage.retention import keep_removing_expired
from attache_core.storage.store import StoredTurn
from attache_core.testing.memory_store import MemoryStore
from attache_core.testing.retention_contract import DAY_S, RETENTION, RetentionContract, turn_aged
from attache_core.testing.store_contract import random_text
from attache_core.tools.task_scope import task_scope

WAIT_S = 5.0
TABLES = ("responses", "items", "approvals", "conversation_turns")


class TestSqliteStore(RetentionContract):
    """On disk."""

    @pytest.fixture
    async def store(self, url: str) -> AsyncIterator[Store]:
        async with open_store(url, RETENTION) as store:
            yield store


class TestPostgresqlStore(RetentionContract):
    """On a server."""

    @pytest.fixture
    async def store(self, server_url: str) -> AsyncIterator[Store]:
        async with open_store(server_url, RETENTION) as store:
            yield store


class TestMemoryStore(RetentionContract):
    """The fake."""

    @pytest.fixture
    async def store(self) -> Store:
        return MemoryStore(RETENTION)


async def test_store_without_a_retention_keeps_everything(each_url: str) -> None:
    turn = turn_aged("resp_1", 100 * 365 * DAY_S)
    async with open_store(each_url) as store:
        await store.save_turn("t", turn)

        assert await store.remove_expired() == 0
        assert await store.load_turn("t", "resp_1") == turn


async def test_one_removal_takes_a_bounded_number_the_oldest_first(each_url: str) -> None:
    count = 2 * MAX_EXPIRED_TURNS + 1
    async with open_store(each_url, RETENTION) as store:
        for number in range(count):
            await store.save_turn("t", turn_aged(f"resp_{number}", DAY_S + 60 + number))

        removed = [await store.remove_expired() for _ in range(4)]

    assert removed == [MAX_EXPIRED_TURNS, MAX_EXPIRED_TURNS, 1, 0]


async def test_one_removal_reads_a_bounded_number_of_bytes(each_url: str) -> None:
    size = MAX_EXPIRED_BYTES * 2 // 3
    async with open_store(each_url, RETENTION) as store:
        for number in range(2):
            turn = turn_aged(f"resp_{number}", DAY_S + 60)
            await store.save_turn("t", StoredTurn({**turn.response, "text": random_text(size)}, turn.input))

        assert [await store.remove_expired() for _ in range(3)] == [1, 1, 0]


async def test_several_that_remove_at_once_while_turns_are_saved_remove_each_turn_once(each_url: str) -> None:
    async with open_store(each_url, RETENTION) as one, open_store(each_url, RETENTION) as other:
        for number in range(MAX_EXPIRED_TURNS + 20):
            await one.save_turn("t", turn_aged(f"resp_{number}", DAY_S + 60))

        async def remove(store: Store) -> int:
            return sum([await store.remove_expired() for _ in range(6)])

        async def save(store: Store) -> None:
            for number in range(20):
                shared = turn_aged(f"resp_{number}", 0).input
                await store.save_turn("t", StoredTurn(turn_aged(f"resp_new_{number}", 0).response, shared))

        async with asyncio.TaskGroup() as tasks:
            removing = [tasks.create_task(remove(store)) for store in (one, other)]
            for store in (one, other):
                tasks.create_task(save(store))
        left = await one.remove_expired()

        assert sum(task.result() for task in removing) + left == MAX_EXPIRED_TURNS + 20
        for number in range(20):
            assert await one.load_response("t", f"resp_new_{number}") is not None


async def test_nothing_is_left_of_what_was_removed(url: str) -> None:
    contract = RetentionContract()
    async with open_store(url, RETENTION) as store:
        await contract.test_turn_whose_time_is_over_is_unknown_before_it_is_removed(store)
        await store.remove_expired()
        await contract.test_items_of_a_conversation_stay_when_its_response_is_removed(store)

    engine = create_engine(url)
    with engine.connect() as connection:
        rows = {table: connection.execute(text(f"SELECT count(*) FROM {table}")).scalar() for table in TABLES}
        ids = connection.execute(text("SELECT id FROM conversation_items ORDER BY position")).scalars().all()
    engine.dispose()
    assert rows == dict.fromkeys(TABLES, 0)
    assert ids == ["msg_in_resp_1", "msg_out_resp_1"]


class Flaky(MemoryStore):
    """A store that is down for the first removal."""

    def __init__(self) -> None:
        super().__init__(RETENTION)
        self.asked = 0
        self.removed = asyncio.Event()

    async def remove_expired(self) -> int:
        self.asked += 1
        if self.asked == 1:
            raise StoreError("down")
        count = await super().remove_expired()
        if count:
            self.removed.set()
        return count


async def test_removal_goes_on_after_the_store_was_down_until_it_is_cancelled() -> None:
    store = Flaky()
    await store.save_turn("t", turn_aged("resp_1", DAY_S + 60))

    async with asyncio.timeout(WAIT_S), task_scope() as tasks:
        tasks.start(keep_removing_expired(store, 0.001))
        await store.removed.wait()

    assert (await store.remove_expired(), store.asked > 1) == (0, True)
