"""What the SQL store does beyond the contract of every store: its statements and its rows."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Select, create_engine, literal_column, select

from attache_core.errors import ClientError, StoreError
from attache_core.json_codec import Json, encode
from attache_core.storage import Conversation, Store, StoredTurn, StoreLimits
from attache_core.storage.conversation_statements import (
    history_statement,
)
from attache_core.storage.engine import open_store
from attache_core.storage.limits import DEFAULT_LIMITS
from attache_core.storage.prepared import Prepared
from attache_core.storage.row import to_row
from attache_core.storage.sql_store import chain_statement, items_statement
from attache_core.testing.memory_store import MemoryStore
from attache_core.testing.store_contract import stored_turn, turn_of_items
from attache_core.types.paging import Page


async def _save_chain(store: Store, depth: int) -> list[StoredTurn]:
    turns = [stored_turn(f"resp_{n:03}", f"resp_{n - 1:03}" if n else None) for n in range(depth)]
    for turn in turns:
        await store.save_turn("t", turn)
    return turns


async def test_load_chain_of_any_depth_sends_one_statement(each_url: str, statements: list[Prepared]) -> None:
    async with open_store(each_url) as store:
        turns = await _save_chain(store, 50)
        for depth in (1, 50):
            statements.clear()
            assert await store.load_chain("t", f"resp_{depth - 1:03}") == turns[:depth]
            assert len(statements) == 1


async def test_every_call_sends_one_statement_and_a_save_of_items_two_on_sqlite(
    each_url: str, statements: list[Prepared]
) -> None:
    async with open_store(each_url) as store:
        await store.check()
        statements.clear()
        await store.save_turn("t", StoredTurn({"id": "resp_0"}, []))
        await store.save_turn("t", turn_of_items("resp_1", ["msg_1", "msg_2"], ["msg_3"]))
        await store.load_response("t", "resp_1")
        await store.load_items("t", ["msg_1", "msg_3"])
    sent = [" ".join(statement.text.split()[:3]) for statement in statements]
    if each_url.startswith("sqlite"):
        assert sent[:-2] == ["INSERT INTO responses", "INSERT INTO responses", "INSERT INTO items"]
    else:
        assert sent[:-2] == ["WITH turn AS", "WITH turn AS"]
    assert [statement.split()[0] for statement in sent[-2:]] == ["SELECT", "WITH"]


async def test_a_turn_whose_items_cannot_be_found_later_is_not_stored(file: Path, url: str) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TRIGGER no BEFORE INSERT ON items BEGIN SELECT RAISE(ABORT, 'full'); END")
    async with open_store(url) as store:
        with pytest.raises(StoreError):
            await store.save_turn("t", turn_of_items("resp_1", ["msg_1"], []))
        assert await store.load_chain("t", "resp_1") == []


async def test_row_of_the_200th_turn_is_as_small_as_the_first(file: Path, url: str) -> None:
    async with open_store(url) as store:
        await _save_chain(store, 200)
    with closing(sqlite3.connect(file)) as connection:
        sizes = connection.execute("SELECT length(input) + length(response) FROM responses WHERE id > 'resp_000'")
        assert {size for (size,) in sizes} == {to_row("t", stored_turn("resp_199", "resp_198")).size_bytes}


async def test_row_is_readable_with_the_database_s_own_shell(file: Path, url: str) -> None:
    async with open_store(url) as store:
        await store.save_turn("t", stored_turn("resp_2", "resp_1"))
    with closing(sqlite3.connect(file)) as connection:
        rows = connection.execute("SELECT tenant, id, previous_id, created_at, status FROM responses").fetchall()
    assert rows == [("t", "resp_2", "resp_1", 1_760_000_000, "completed")]


async def test_saved_turn_outlives_the_store(url: str) -> None:
    async with open_store(url) as store:
        turns = await _save_chain(store, 3)
    async with open_store(url) as store:
        assert await store.load_chain("t", "resp_002") == turns


def test_chain_is_walked_by_key_alone(file: Path) -> None:
    dialect = create_engine("sqlite://", paramstyle="named").dialect
    compiled = chain_statement(DEFAULT_LIMITS).compile(dialect=dialect)
    with closing(sqlite3.connect(file)) as connection:
        plan = connection.execute(f"EXPLAIN QUERY PLAN {compiled}", {**compiled.params, "tenant": "t", "id": "x"})
        steps = [detail for *_, detail in plan if "responses" in detail]
    assert steps == ["SEARCH responses USING INDEX sqlite_autoindex_responses_1 (tenant=? AND id=?)"] * 3


def test_items_are_found_by_key_alone(file: Path) -> None:
    dialect = create_engine("sqlite://", paramstyle="named").dialect
    compiled = items_statement(DEFAULT_LIMITS).compile(dialect=dialect)
    asked = compiled.construct_expanded_state({"tenant": "t", "ids": ["x", "y"]})
    with closing(sqlite3.connect(file)) as connection:
        plan = connection.execute(f"EXPLAIN QUERY PLAN {asked.statement}", asked.parameters)
        steps = [detail for *_, detail in plan if "items" in detail or "responses" in detail]
    by_key = "SEARCH responses USING INDEX sqlite_autoindex_responses_1 (tenant=? AND id=?)"
    assert steps == ["SEARCH items USING PRIMARY KEY (tenant=? AND id=?)", by_key, f"{by_key} LEFT-JOIN"]


_SIZE = to_row("t", stored_turn("resp_000")).size_bytes
_LARGER = to_row("t", stored_turn("resp_001", "resp_000")).size_bytes


@pytest.mark.parametrize(
    ("limits", "excess"),
    [
        (StoreLimits(max_chain_turns=3), "more than 3 turns"),
        (StoreLimits(max_chain_bytes=_SIZE + 2 * _LARGER), f"more than {_SIZE + 2 * _LARGER} bytes"),
    ],
    ids=["turns", "bytes"],
)
@pytest.mark.parametrize("kind", ["sql", "memory"])
async def test_chain_over_a_limit_answers_client_error(
    each_url: str, kind: str, limits: StoreLimits, excess: str
) -> None:
    async with open_store(each_url, limits) as sql_store:
        store: Store = sql_store if kind == "sql" else MemoryStore(limits)
        turns = await _save_chain(store, 6)
        assert await store.load_chain("t", "resp_002") == turns[:3]
        for response_id in ("resp_003", "resp_005"):
            with pytest.raises(ClientError) as refused:
                await store.load_chain("t", response_id)
            assert (refused.value.code, refused.value.http_status) == ("chain_too_long", 400)
            assert refused.value.message == (
                f"The conversation that this response continues has {excess}; start a new one."
            )


@pytest.mark.parametrize("kind", ["sql", "memory"])
async def test_items_over_a_limit_answer_client_error(each_url: str, kind: str) -> None:
    turns = [turn_of_items(f"resp_{n}", [f"msg_{n}", f"msg_{n}a"], []) for n in range(3)]
    limits = StoreLimits(max_items=3, max_items_bytes=2 * to_row("t", turns[0]).size_bytes)
    async with open_store(each_url, limits) as sql_store:
        store: Store = sql_store if kind == "sql" else MemoryStore(limits)
        for turn in turns:
            await store.save_turn("t", turn)
        assert list(await store.load_items("t", ["msg_0", "msg_0a", "msg_1"])) == ["msg_0", "msg_0a", "msg_1"]
        with pytest.raises(ClientError) as too_large:
            await store.load_items("t", ["msg_0", "msg_1", "msg_2"])
        with pytest.raises(ClientError) as too_many:
            await store.load_items("t", ["msg_0", "msg_x", "msg_y", "msg_z"])
    assert too_large.value.message == (
        f"The input refers to items of turns with more than {limits.max_items_bytes} bytes; "
        "send the items themselves, or continue from a response."
    )
    assert too_many.value.message == (
        "The input refers to more than 3 items; send the items themselves, or continue from a response."
    )


async def test_connections_wait_for_the_disk_before_a_save_is_told(url: str) -> None:
    async with open_store(url, StoreLimits(lock_timeout_s=1.5)) as store:
        names = ("journal_mode", "synchronous", "busy_timeout", "foreign_keys")
        settings: Select[*tuple[Any, ...]] = select(
            *[literal_column(f"(SELECT * FROM pragma_{name})") for name in names]
        )
        expected: list[Any] = [("wal", 2, 1500, 1)]
        assert await store._database.read("settings", settings) == expected
        assert await store._database.write("settings", lambda transaction: transaction.rows(settings)) == expected


async def test_history_of_a_conversation_of_any_length_is_one_statement(url: str, statements: list[Prepared]) -> None:
    async with open_store(url) as store:
        items = [{"id": f"msg_{number}"} for number in range(500)]
        await store.conversations.create("t", Conversation("conv_1", 0, {}), items)
        statements.clear()
        assert await store.conversations.load_history("t", "conv_1") == items
        assert len(statements) == 1


def test_items_of_a_conversation_are_found_by_key_alone(file: Path) -> None:
    dialect = create_engine("sqlite://", paramstyle="named").dialect
    compiled = history_statement(DEFAULT_LIMITS).compile(dialect=dialect)
    asked = {"the_tenant": "t", "the_id": "conv_1", "revision": None}
    with closing(sqlite3.connect(file)) as connection:
        plan = connection.execute(f"EXPLAIN QUERY PLAN {compiled}", {**compiled.params, **asked})
        steps = [detail for *_, detail in plan if detail.startswith(("SEARCH", "SCAN"))]
    assert not [step for step in steps if step.startswith("SCAN conversation")], steps


async def test_one_item_of_a_conversation_is_found_and_removed_without_reading_the_others(
    file: Path, url: str, statements: list[Prepared]
) -> None:
    """And whether a response has read a removed one is looked up, not searched among all of them."""
    async with open_store(url) as store:
        await store.conversations.create("t", Conversation("conv_1", 0, {}), [{"id": "msg_1"}, {"id": "msg_2"}])
        lease = await store.conversations.lease("t", "conv_1", "resp_1", 60)
        await store.save_turn("t", stored_turn("resp_1"), lease)
        statements.clear()
        await store.conversations.load_item("t", "conv_1", "msg_1")
        await store.conversations.list_items("t", "conv_1", Page(after="msg_1"))
        await store.conversations.remove_item("t", "conv_1", "msg_2")
        await store.delete_turn("t", "resp_1")
    with closing(sqlite3.connect(file)) as connection:
        asked = [statement.bound({"ids": ["msg_1"]}) for statement in statements]
        plans = [connection.execute(f"EXPLAIN QUERY PLAN {text}", values).fetchall() for text, values in asked]
    steps = {detail.split(" INDEX ")[-1] for plan in plans for *_, detail in plan if "SEARCH conversation_" in detail}
    by_id = "conversation_items_by_id (tenant=? AND id=? AND conversation_id=?)"
    by_key = "sqlite_autoindex_conversation_items_1 (tenant=? AND conversation_id=?"
    turns_by_id = "sqlite_autoindex_conversation_turns_1 (tenant=? AND response_id=?)"
    turns = "conversation_turns_by_conversation (tenant=? AND conversation_id=? AND revision>? AND revision<?)"
    page = {f"{by_key} AND position<?)", f"{by_key} AND position=?) LEFT-JOIN"}
    assert steps == {by_id, turns_by_id, turns, *page}


@pytest.mark.parametrize("kind", ["sql", "memory"])
@pytest.mark.parametrize(
    ("limits", "excess"),
    [
        (StoreLimits(max_conversation_items=2), "more than 2 items"),
        (StoreLimits(max_conversation_bytes=32), "more than 32 bytes"),
    ],
    ids=["items", "bytes"],
)
async def test_conversation_over_a_limit_answers_client_error(
    url: str, kind: str, limits: StoreLimits, excess: str
) -> None:
    async with open_store(url, limits) as sql_store:
        store: Store = sql_store if kind == "sql" else MemoryStore(limits)
        await store.conversations.create("t", Conversation("conv_1", 0, {}), [{"id": "msg_1"}, {"id": "msg_2"}])
        assert len(await store.conversations.load_history("t", "conv_1") or ()) == 2
        await store.conversations.add_items("t", "conv_1", [{"id": "msg_3"}])
        with pytest.raises(ClientError) as refused:
            await store.conversations.load_history("t", "conv_1")
        assert (refused.value.code, refused.value.http_status) == ("conversation_too_long", 400)
        assert refused.value.message == f"The conversation has {excess}; remove items from it, or create a new one."


@pytest.mark.parametrize("kind", ["sql", "memory"])
async def test_page_over_a_limit_is_shorter_and_says_that_there_is_more(url: str, kind: str) -> None:
    items: list[Json] = [{"id": f"msg_{number}", "n": "x" * (100 if number == 3 else 10)} for number in range(5)]
    limits = StoreLimits(max_page_bytes=2 * len(encode(items[0])))
    async with open_store(url, limits) as sql_store:
        store: Store = sql_store if kind == "sql" else MemoryStore(limits)
        await store.conversations.create("t", Conversation("conv_1", 0, {}), items)
        read, after, has_more = [], None, True
        while has_more:
            page = await store.conversations.list_items("t", "conv_1", Page(4, after, "asc"))
            assert page is not None
            read.append(page.items)
            after, has_more = page.items[-1]["id"], page.has_more
    assert read == [items[:2], items[2:3], items[3:4], items[4:]]


@pytest.mark.parametrize("kind", ["sql", "memory"])
async def test_item_of_many_conversations_counts_once(each_url: str, kind: str) -> None:
    """However many there are: adding a stored item to one conversation after the other never comes to an end."""
    items: list[Json] = [{"id": "msg_1", "said": "x"}, {"id": "msg_2", "said": "y"}]
    limits = StoreLimits(max_items_bytes=len(encode(items[0])))
    async with open_store(each_url, limits) as sql_store:
        store: Store = sql_store if kind == "sql" else MemoryStore(limits)
        for number in range(3):
            await store.conversations.create("t", Conversation(f"conv_{number}", 0, {}), items)
        assert await store.conversations.load_items("t", ["msg_1"]) == {"msg_1": items[0]}
        with pytest.raises(ClientError, match=f"more than {limits.max_items_bytes} bytes"):
            await store.conversations.load_items("t", ["msg_1", "msg_2"])


async def test_removed_items_are_deleted_once_no_response_has_read_them(file: Path, url: str) -> None:
    def rows() -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(file)) as connection:
            return connection.execute("SELECT id FROM conversation_items ORDER BY position").fetchall()

    async with open_store(url) as store:
        items = [{"id": "msg_read"}, {"id": "msg_kept"}]
        await store.conversations.create("t", Conversation("conv_1", 0, {}), items)
        lease = await store.conversations.lease("t", "conv_1", "one", 60)
        await store.save_turn("t", turn_of_items("resp_1", ["msg_1"], ["msg_2"]), lease)
        for item_id in ("msg_read", "msg_1"):
            await store.conversations.remove_item("t", "conv_1", item_id)
        assert rows() == [("msg_read",), ("msg_kept",), ("msg_2",)]
        await store.conversations.delete("t", "conv_1")
        assert rows() == [("msg_read",), ("msg_kept",)]
        await store.delete_turn("t", "resp_1")
        assert rows() == []
