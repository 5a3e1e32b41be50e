"""A SQLite file that is full or may not be written: StoreError, nothing half written, and back by itself."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from attache_core.errors import StoreError
from attache_core.storage import sqlite
from attache_core.storage.engine import open_store
from attache_core.testing.store_contract import stored_turn, turn_of_items


@pytest.mark.parametrize(
    ("pragma", "cause"),
    [
        ("max_page_count = 40", "OperationalError: database or disk is full"),
        ("query_only = ON", "OperationalError: attempt to write a readonly database"),
    ],
    ids=["full", "read-only"],
)
async def test_file_that_takes_no_more_refuses_turns_whole_keeps_what_it_has_and_takes_turns_again(
    file: Path, url: str, pragma: str, cause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = [turn_of_items(f"resp_{number}", [f"msg_{number}"], ["x" * 5000]) for number in range(50)]
    async with open_store(url) as store:
        await store.save_turn("t", stored_turn("resp_before"))
    monkeypatch.setattr(sqlite, "SETTINGS", (*sqlite.SETTINGS, pragma))
    async with open_store(url) as store:
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
    monkeypatch.undo()
    async with open_store(url) as store:
        await store.save_turn("t", turns[-1])
        assert await store.load_chain("t", turns[-1].response["id"]) == [turns[-1]]
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        (lost,) = connection.execute(
            "SELECT count(*) FROM items WHERE response_id NOT IN (SELECT id FROM responses)"
        ).fetchone()
        assert lost == 0
