"""Changes of a SQLite file that wait at the same moment: committed together, told apart, bounded, lost by no kill."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from attache_core.errors import AttacheError, StoreError
from attache_core.storage import Conversation, Lease, StoreLimits, sqlite_group
from attache_core.storage.database import Transaction
from attache_core.storage.engine import open_store
from attache_core.storage.sql_store import SqlStore
from attache_core.testing.store_contract import stored_turn, turn_of_items

WAIT_S = 5.0
PROGRAM = """
import asyncio, sys
from attache_core.storage.engine import open_store
from attache_core.testing.store_contract import turn_of_items

async def save(store, name):
    for number in range(10_000):
        turn = turn_of_items(f"{name}_{number}", [f"in_{name}_{number}"], [f"out_{name}_{number}"])
        await store.save_turn("t", turn)
        print(f"{name}_{number}", flush=True)

async def main(url):
    async with open_store(url) as store, asyncio.TaskGroup() as tasks:
        for writer in range(16):
            tasks.create_task(save(store, f"{sys.argv[2]}{writer}"))

asyncio.run(main(sys.argv[1]))
"""


class Pause:
    """Work that stands still in the writing thread until it may go on."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.may_end = threading.Event()

    async def __call__(self, _: Transaction) -> None:
        self.entered.set()
        assert self.may_end.wait(WAIT_S)


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of every transaction that was begun, whether its commit waits for the disk; none ends for want of time."""
    monkeypatch.setattr(sqlite_group, "GROUP_MS", 60_000)
    seen: list[bool] = []
    begin = sqlite_group.begin

    def note(connection: sqlite3.Connection, *, durable: bool) -> None:
        seen.append(durable)
        begin(connection, durable=durable)

    monkeypatch.setattr(sqlite_group, "begin", note)
    return seen


@asynccontextmanager
async def standing_still(store: SqlStore) -> AsyncIterator[asyncio.TaskGroup]:
    """A change that is being made until the block ends; whatever is started in it waits for that, and is awaited."""
    pause = Pause()
    async with asyncio.timeout(2 * WAIT_S), asyncio.TaskGroup() as tasks:
        tasks.create_task(store._database.write("pause", pause))
        assert await asyncio.to_thread(pause.entered.wait, WAIT_S)
        try:
            yield tasks
            await asyncio.sleep(0)
        finally:
            pause.may_end.set()


async def failure(call: Coroutine[Any, Any, object]) -> str | None:
    """The code of the error that a call ends with, if it does."""
    try:
        await call
    except AttacheError as error:
        return error.code
    return None


async def ids(store: SqlStore, *response_ids: str) -> list[str]:
    """Those of them that are stored."""
    return [name for name in response_ids if await store.load_response("t", name) is not None]


async def test_changes_that_wait_for_another_are_committed_together(url: str, begun: list[bool]) -> None:
    turns = [turn_of_items(f"resp_{number}", [f"msg_{number}"], [f"out_{number}"]) for number in range(20)]
    async with open_store(url) as store:
        async with standing_still(store) as tasks:
            for turn in turns:
                tasks.create_task(store.save_turn("t", turn))

        assert [await store.load_chain("t", turn.response["id"]) for turn in turns] == [[turn] for turn in turns]
    assert len(begun) == 2


async def test_group_takes_a_bounded_number_of_changes(url: str, begun: list[bool]) -> None:
    async with open_store(url, StoreLimits(max_group_writes=4)) as store:
        await _save_ten(store)
    assert len(begun) == 1 + 3


async def test_group_takes_no_further_change_when_it_has_run_for_its_time(
    url: str, begun: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_group, "GROUP_MS", -1)
    async with open_store(url) as store:
        await _save_ten(store)
    assert len(begun) == 1 + 10


async def test_change_that_fails_takes_no_other_of_its_group_with_it(file: Path, url: str) -> None:
    """Neither one that the store refuses nor one that the database does; and each is told of its own."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(
            "CREATE TRIGGER no BEFORE INSERT ON items WHEN new.id = 'msg_bad' BEGIN SELECT RAISE(ROLLBACK, 'no'); END"
        )
    lost = Lease("conv_1", "nobody", 0)
    async with open_store(url) as store:
        await store.conversations.create("t", Conversation("conv_1", 0, {}), [])
        async with standing_still(store) as tasks:
            told = [
                tasks.create_task(failure(call))
                for call in (
                    store.save_turn("t", turn_of_items("resp_1", ["msg_1"], [])),
                    store.save_turn("t", turn_of_items("resp_2", ["msg_2"], []), lost),
                    store.save_turn("t", turn_of_items("resp_3", ["msg_3"], [])),
                    store.save_turn("t", turn_of_items("resp_4", ["msg_bad"], [])),
                    store.save_turn("t", turn_of_items("resp_5", ["msg_5"], [])),
                )
            ]

        assert [task.result() for task in told] == [None, "conversation_changed", None, "store_unavailable", None]
        assert await ids(store, *(f"resp_{number}" for number in range(1, 6))) == ["resp_1", "resp_3", "resp_5"]
        assert list(await store.load_items("t", ["msg_2", "msg_3", "msg_bad", "msg_5"])) == ["msg_3", "msg_5"]


async def test_others_share_their_commits_however_many_of_their_group_fail(url: str, begun: list[bool]) -> None:
    turns = [turn_of_items(f"resp_{number}", [f"msg_{number}"], []) for number in range(30)]
    lost = Lease("conv_1", "nobody", 0)
    async with open_store(url) as store:
        async with standing_still(store) as tasks:
            told = [
                tasks.create_task(failure(store.save_turn("t", turn, lost if number in (10, 20, 21) else None)))
                for number, turn in enumerate(turns)
            ]

        assert [place for place, task in enumerate(told) if task.result()] == [10, 20, 21]
        stored = await ids(store, *(turn.response["id"] for turn in turns))
        assert stored == [f"resp_{number}" for number in range(30) if number not in (10, 20, 21)]
    failing, together = 2 + 3, 3
    assert len(begun) == 1 + failing + together


async def test_group_that_cannot_be_committed_is_told_apart(file: Path, url: str) -> None:
    """One of them breaks a promise that the database looks at in the end."""
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(
            "CREATE TABLE parents (id PRIMARY KEY);"
            "CREATE TABLE children (id REFERENCES parents DEFERRABLE INITIALLY DEFERRED);"
            "CREATE TRIGGER no AFTER INSERT ON responses WHEN new.id = 'resp_bad'"
            " BEGIN INSERT INTO children VALUES (1); END"
        )
    async with open_store(url) as store:
        async with standing_still(store) as tasks:
            names = ["resp_1", "resp_bad", "resp_2"]
            told = [tasks.create_task(failure(store.save_turn("t", stored_turn(name)))) for name in names]

        assert [task.result() for task in told] == [None, "store_unavailable", None]
        assert await ids(store, *names) == ["resp_1", "resp_2"]


async def test_change_that_nobody_waits_for_is_not_made_once_its_group_comes_to_it(url: str) -> None:
    pause = Pause()
    async with open_store(url) as store:
        async with standing_still(store) as tasks:
            made = tasks.create_task(store.save_turn("t", stored_turn("resp_before")))
            tasks.create_task(store._database.write("pause", pause))
            given_up = tasks.create_task(store.save_turn("t", stored_turn("resp_given_up")))
            after = tasks.create_task(store.save_turn("t", stored_turn("resp_after")))
            tasks.create_task(_cancel_while(pause, made, given_up))

        assert (made.cancelled(), given_up.cancelled(), after.done()) == (True, True, True)
        assert await ids(store, "resp_given_up", "resp_after") == ["resp_after"]
        await store.save_turn("t", stored_turn("resp_before"))
        assert await store.load_chain("t", "resp_before") == [stored_turn("resp_before")]


async def test_group_that_does_not_get_the_lock_fails_whole_in_time(
    file: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"resp_{number}" for number in range(5)]
    with closing(sqlite3.connect(file, isolation_level=None, check_same_thread=False)) as other:
        async with open_store(url, StoreLimits(lock_timeout_s=0.1)) as store:
            with capture_logs() as logs:
                async with standing_still(store) as tasks:
                    monkeypatch.setattr(sqlite_group, "begin", _begin_after(other))
                    told = [tasks.create_task(failure(store.save_turn("t", stored_turn(name)))) for name in names]

            assert [task.result() for task in told] == ["store_unavailable"] * len(names)
            assert {entry["cause"] for entry in logs} == {"OperationalError: database is locked"}
            monkeypatch.undo()
            other.execute("ROLLBACK")
            assert await ids(store, *names) == []
            await store.save_turn("t", stored_turn("resp_0"))


async def test_change_that_finds_too_many_waiting_is_refused_at_once(url: str) -> None:
    async with open_store(url, StoreLimits(max_waiting_calls=2)) as store:
        async with standing_still(store) as tasks:
            for number in range(2):
                tasks.create_task(store.save_turn("t", stored_turn(f"resp_{number}")))
            await asyncio.sleep(0)
            with capture_logs() as logs, pytest.raises(StoreError) as refused:
                await store.save_turn("t", stored_turn("resp_2"))

        assert (refused.value.http_status, refused.value.code) == (503, "store_unavailable")
        assert [entry["cause"] for entry in logs] == ["NoConnectionError: 2 calls wait for a connection"]
        assert await ids(store, "resp_0", "resp_1", "resp_2") == ["resp_0", "resp_1"]


async def test_store_that_is_closed_ends_what_it_does_and_refuses_what_waits(url: str) -> None:
    pause = Pause()
    async with asyncio.timeout(2 * WAIT_S), asyncio.TaskGroup() as tasks:
        async with open_store(url, StoreLimits(max_group_writes=1)) as store:
            tasks.create_task(store._database.write("pause", pause))
            assert await asyncio.to_thread(pause.entered.wait, WAIT_S)
            waiting = tasks.create_task(failure(store.save_turn("t", stored_turn("resp_1"))))
            await asyncio.sleep(0)
            asyncio.get_running_loop().call_soon(pause.may_end.set)
        late = await failure(store.save_turn("t", stored_turn("resp_2")))

    assert (waiting.result(), late) == ("store_unavailable", "store_unavailable")
    async with open_store(url) as store:
        assert await ids(store, "resp_1", "resp_2") == []


async def test_only_what_a_client_is_told_of_waits_for_the_disk(url: str, begun: list[bool]) -> None:
    async with open_store(url) as store:
        await store.conversations.create("t", Conversation("conv_1", 0, {}), [])
        lease = await store.conversations.lease("t", "conv_1", "one", 60)
        assert lease is not None
        await store.conversations.renew("t", lease, 60)
        await store.save_turn("t", turn_of_items("resp_1", ["msg_1"], []), lease)
        await store.conversations.release("t", lease)
    assert begun == [True, False, False, True, False]


async def test_process_killed_in_the_middle_of_group_commits_has_every_turn_that_was_told(file: Path, url: str) -> None:
    told: list[str] = []
    for kill in "ab":
        told += await _told_until_killed(url, kill)
    async with open_store(url) as store:
        for name in told:
            turn = turn_of_items(name, [f"in_{name}"], [f"out_{name}"])
            assert await store.load_turn("t", name) == turn
            assert list(await store.load_items("t", [f"in_{name}", f"out_{name}"])) == [f"in_{name}", f"out_{name}"]
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        half = "SELECT count(*) FROM responses WHERE 2 <> (SELECT count(*) FROM items WHERE response_id = responses.id)"
        assert connection.execute(half).fetchall() == [(0,)]


async def _told_until_killed(url: str, name: str) -> list[str]:
    """The ids that sixteen writers told of before their process was killed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM, url, name, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(30):
            told = [(await process.stdout.readline()).decode() for _ in range(100)]
    finally:
        process.kill()
        rest, _ = await process.communicate()
    return [line.strip() for line in [*told, *rest.decode().splitlines(keepends=True)] if line.endswith("\n")]


async def _cancel_while(pause: Pause, *tasks: asyncio.Task[None]) -> None:
    assert await asyncio.to_thread(pause.entered.wait, WAIT_S)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    pause.may_end.set()


def _begin_after(other: sqlite3.Connection) -> Callable[..., None]:
    """Begin a transaction, but not before another process, as it were, has begun one."""
    begin = sqlite_group.begin

    def begin_late(connection: sqlite3.Connection, *, durable: bool) -> None:
        other.execute("BEGIN IMMEDIATE")
        begin(connection, durable=durable)

    return begin_late


async def _save_ten(store: SqlStore) -> None:
    """At the same moment."""
    names = [f"resp_{number}" for number in range(10)]
    async with standing_still(store) as tasks:
        for name in names:
            tasks.create_task(store.save_turn("t", stored_turn(name)))
    assert await ids(store, *names) == names
