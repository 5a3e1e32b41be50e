"""A SQLite file that is full or may not be written: StoreError, nothing half written, and back by itself."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import event
from sqlalchemy.engine.interfaces import DBAPIConnection
from structlog.testing import capture_logs

from attache_core.errors import StoreError
from attache_core.storage.engine import open_store
from attache_core.storage.sql_store import SqlStore
from attache_core.testing.store_contract import stored_turn, turn_of_items


def on_connections(store: SqlStore, *pragmas: str) -> Callable[[], None]:
    """Set these on every connection that writes from now on; until the answer is called."""

    def connected(connection: DBAPIConnection, _: object) -> None:
        cursor = connection.cursor()
        for pragma in pragmas:
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    engine = store._database.writers.sync_engine
    event.listen(engine, "connect", connected)
    return lambda: event.remove(engine, "connect", connected)


@pytest.mark.parametrize(
    ("pragma", "cause"),
    [
        ("max_page_count = 40", "OperationalError: database or disk is full"),
        ("query_only = ON", "OperationalError: attempt to write a readonly database"),
    ],
    ids=["full", "read-only"],
)
async def test_file_that_takes_no_more_refuses_turns_whole_keeps_what_it_has_and_takes_turns_again(
    file: Path, url: str, pragma: str, cause: str
) -> None:
    turns = [turn_of_items(f"resp_{number}", [f"msg_{number}"], ["x" * 5000]) for number in range(50)]
    async with open_store(url) as store:
        await store.save_turn("t", stored_turn("resp_before"))
        await store._database.writers.dispose()
        end = on_connections(store, pragma)
        told = []
        with capture_logs() as logs:
            for turn in turns:
                try:
                    await store.save_turn("t", turn)
                except StoreError:
                    continue
                told.append(turn)
        assert {entry["cause"] for entry in logs} == {cause}
        assert len(told) < len(turns)
        for turn in turns:
            assert await store.load_chain("t", turn.response["id"]) == ([turn] if turn in told else [])
        assert await store.load_response("t", "resp_before") == stored_turn("resp_before").response
        end()
        await store._database.writers.dispose()
        await store.save_turn("t", turns[-1])
        assert await store.load_chain("t", turns[-1].response["id"]) == [turns[-1]]
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        (lost,) = connection.execute(
            "SELECT count(*) FROM items WHERE response_id NOT IN (SELECT id FROM responses)"
        ).fetchone()
        assert lost == 0
