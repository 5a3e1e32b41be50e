"""A database that is missing, broken, locked, removed or busy: StoreError, and nothing of the library in it."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import traceback
from collections.abc import Callable, Coroutine
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest
from structlog.testing import capture_logs

from attache_core.errors import StoreError, error_object
from attache_core.storage import Store, StoreLimits, sqlite_group
from attache_core.storage.engine import open_store
from attache_core.storage.migrate import migrate
from attache_core.testing.memory_store import MemoryStore
from attache_core.testing.store_contract import stored_turn
from core.storage.store_calls import CALLS, CANARY, Call

IMPATIENT = StoreLimits(lock_timeout_s=0)


def _remove(file: Path) -> None:
    file.unlink()


def _overwrite(file: Path) -> None:
    file.write_bytes(b"a photograph" * 1000)


def _empty(file: Path) -> None:
    file.write_bytes(b"")


def _replace_by_directory(file: Path) -> None:
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
@pytest.mark.parametrize("harm", [_remove, _overwrite, _empty, _replace_by_directory])
async def test_every_call_on_unusable_file_answers_store_error(
    file: Path, url: str, harm: Callable[[Path], None], call: Call
) -> None:
    harm(file)
    async with open_store(url) as store:
        await _assert_out_of_reach(store, call)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
async def test_every_call_after_the_file_was_removed_answers_store_error_and_makes_no_file(
    file: Path, url: str, call: Call
) -> None:
    async with open_store(url) as store:
        await store.save_turn("t", stored_turn("resp_1"))
        await store.check()
        _remove(file)
        await _assert_out_of_reach(store, call)
        assert list(file.parent.glob("*.db")) == []


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
async def test_every_call_of_unavailable_memory_store_answers_store_error(call: Call) -> None:
    store = MemoryStore()
    store.available = False
    with pytest.raises(StoreError):
        await call(store)


async def test_store_whose_file_was_removed_and_made_anew_uses_the_new_one(file: Path, url: str) -> None:
    async with open_store(url) as store:
        await store.save_turn("t", stored_turn("resp_old"))
        await store.check()
        for each in file.parent.glob(f"{file.name}*"):
            _remove(each)
        migrate(url)
        await store.save_turn("t", stored_turn("resp_new"))
        assert await store.load_response("t", "resp_old") is None
    async with open_store(url) as store:
        assert await store.load_chain("t", "resp_new") == [stored_turn("resp_new")]


async def test_store_whose_file_was_put_back_from_a_copy_has_a_log_ahead_again(file: Path, url: str) -> None:
    copy = file.with_suffix(".copy")
    async with open_store(url) as store:
        await store.save_turn("t", stored_turn("resp_1"))
        with closing(sqlite3.connect(file)) as connection:
            connection.execute(f"VACUUM INTO '{copy}'")
        for each in file.parent.glob(f"{file.name}*"):
            _remove(each)
        copy.rename(file)
        async with asyncio.TaskGroup() as tasks:
            for number in range(20):
                tasks.create_task(store.save_turn("t", stored_turn(f"copy_{number}")))
                tasks.create_task(store.check())
        assert await store.load_chain("t", "resp_1") == [stored_turn("resp_1")]
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchall() == [("wal",)]


async def test_save_while_another_process_writes_answers_store_error_and_loads_go_on(file: Path, url: str) -> None:
    async with open_store(url, IMPATIENT) as store:
        await store.save_turn("t", stored_turn("resp_1"))
        with closing(_lock(file)) as other:
            await _assert_out_of_reach(store, CALLS["save_turn"])
            assert await store.load_chain("t", "resp_1") == [stored_turn("resp_1")]
            other.execute("ROLLBACK")
        assert await store.load_chain("t", "resp_2") == []
        await store.save_turn("t", stored_turn("resp_2"))


async def test_save_that_finds_no_free_connection_answers_store_error(file: Path, url: str) -> None:
    async with open_store(url, StoreLimits(connection_timeout_s=0)) as store:
        with closing(_lock(file)) as other:
            async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
                await _start(tasks, store.save_turn("t", stored_turn("resp_1")))
                await _assert_out_of_reach(store, CALLS["save_turn"])
                other.execute("ROLLBACK")
        assert await store.load_chain("t", "resp_1") == [stored_turn("resp_1")]


async def test_cancelled_save_writes_nothing_and_the_next_one_succeeds(file: Path, url: str) -> None:
    async with asyncio.timeout(5), open_store(url) as store:
        with closing(_lock(file)) as other:
            async with asyncio.TaskGroup() as tasks:
                task = await _start(tasks, store.save_turn("t", stored_turn("resp_1")))
                task.cancel()
                other.execute("ROLLBACK")
        assert await store.load_chain("t", "resp_1") == []
        await store.save_turn("t", stored_turn("resp_2"))
        assert await store.load_chain("t", "resp_2") == [stored_turn("resp_2")]


async def test_store_that_gets_no_thread_answers_store_error_until_it_does(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async with asyncio.timeout(5), open_store(url) as store:
        with monkeypatch.context() as few_threads:
            few_threads.setattr(threading.Thread, "start", refuse)
            for call in (CALLS["save_turn"], CALLS["load_chain"]) * 5:
                await _assert_out_of_reach(store, call)
        await store.save_turn("t", stored_turn("resp_1"))
        assert await store.load_chain("t", "resp_1") == [stored_turn("resp_1")]


async def test_closed_stores_leave_no_thread_and_no_open_file(file: Path, url: str) -> None:
    threads = set(threading.enumerate())
    for _ in range(3):
        async with open_store(url) as store, asyncio.TaskGroup() as tasks:
            for number in range(10):
                tasks.create_task(store.save_turn("t", stored_turn(f"resp_{number}")))
                tasks.create_task(store.load_chain("t", f"resp_{number}"))
    assert set(threading.enumerate()) == threads
    assert [opened.path for opened in psutil.Process().open_files() if opened.path.startswith(str(file))] == []


async def test_one_store_opens_no_more_connections_than_its_limits(url: str) -> None:
    threads = threading.active_count()
    async with open_store(url, StoreLimits(max_readers=2)) as store:
        async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
            for number in range(20):
                tasks.create_task(store.save_turn("t", stored_turn(f"resp_{number}")))
                tasks.create_task(store.check())
        assert threading.active_count() <= threads + 3


async def _assert_out_of_reach(store: Store, call: Call) -> None:
    with capture_logs() as logs, pytest.raises(StoreError) as failed:
        await call(store)
    assert error_object(failed.value) == {
        "message": "The store is out of reach; the same request may succeed later.",
        "type": "server_error",
        "param": None,
        "code": "store_unavailable",
    }
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [("store_unavailable", "warning")]
    assert CANARY not in repr(logs) + "".join(traceback.format_exception(failed.value))


def _lock(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    return connection


async def _start(tasks: asyncio.TaskGroup, save: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """Begin a save that waits for the database's lock."""
    begun = threading.Event()

    def begin(connection: sqlite3.Connection, *, durable: bool) -> None:
        begun.set()
        really_begin(connection, durable=durable)

    really_begin = sqlite_group.begin
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite_group, "begin", begin)
        task = tasks.create_task(save)
        await asyncio.to_thread(begun.wait, 5)
    return task
