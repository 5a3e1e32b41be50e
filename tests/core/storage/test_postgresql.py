"""A PostgreSQL server that is down, silent, restarted, locked, slow or full: StoreError in time, and back by itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg  # type: ignore[import-untyped]  # it has no types
import pytest
import pytest_asyncio
from sqlalchemy import Select, func, select
from sqlalchemy.dialects.postgresql import asyncpg as words_of_asyncpg
from structlog.testing import capture_logs

from attache_core.errors import StoreError
from attache_core.storage import Conversation, Store, StoreLimits
from attache_core.storage.database import Transaction
from attache_core.storage.engine import open_store
from attache_core.storage.limits import DEFAULT_LIMITS
from attache_core.storage.migrate import migrate
from attache_core.storage.postgresql import PostgresqlTransaction
from attache_core.storage.sql_store import SqlStore, chain_statement, items_statement
from attache_core.storage.tables import metadata
from attache_core.testing.store_contract import stored_turn, turn_of_items
from core.storage.store_calls import CALLS, CANARY, Call
from postgresql_server import PASSWORD, QUOTED_PASSWORD, PostgresqlServer, database_of, running_postgresql
from tcp_proxy import TcpProxy, running_proxy

IMPATIENT = StoreLimits(
    connection_timeout_s=0.1, connect_timeout_s=0.5, lock_timeout_s=0.1, statement_timeout_s=0.3, max_connections=2
)
each_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())


def sessions(postgresql: PostgresqlServer, url: str) -> int:
    """How many connections the database has, besides the one that asks."""
    asked = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{database_of(url)}'"
    return int(postgresql.sql(asked))


@pytest.fixture(scope="module")
def mortal() -> Iterator[PostgresqlServer]:
    """A server of this module's own, to be killed; each test finds and leaves it running."""
    with running_postgresql() as server:
        migrate(server.url())
        yield server


@pytest_asyncio.fixture
async def proxy(postgresql: PostgresqlServer) -> AsyncIterator[TcpProxy]:
    async with running_proxy(postgresql.port) as proxy:
        yield proxy


@asynccontextmanager
async def locked(url: str, tables: str) -> AsyncIterator[None]:
    """Another program holds these tables."""
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            await connection.execute(f"LOCK TABLE {tables}")
            yield
    finally:
        await connection.close()


async def out_of_reach(store: Store, call: Call) -> None:
    with capture_logs() as logs, pytest.raises(StoreError) as failed:
        async with asyncio.timeout(5):
            await call(store)
    assert (failed.value.http_status, failed.value.code) == (503, "store_unavailable")
    assert failed.value.headers == {"retry-after": "1"}
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [("store_unavailable", "warning")]
    for secret in (CANARY, PASSWORD, QUOTED_PASSWORD):
        assert secret not in f"{logs!r} {failed.value!r} {failed.value.__cause__!r}"


async def run_in_thread(work: Callable[[], object]) -> None:
    """The loop goes on, and hears of connections that are closed meanwhile."""
    await asyncio.to_thread(work)


@each_call
async def test_every_call_on_a_server_that_is_down_answers_store_error(unused_tcp_port: int, call: Call) -> None:
    async with open_store(f"postgresql://attache@127.0.0.1:{unused_tcp_port}/attache") as store:
        await out_of_reach(store, call)


@each_call
async def test_every_call_on_a_database_without_tables_answers_store_error(
    postgresql: PostgresqlServer, call: Call
) -> None:
    async with open_store(postgresql.url()) as store:
        await out_of_reach(store, call)


@pytest.mark.parametrize("wrong", ["password", "database", "option"])
async def test_login_that_is_refused_answers_store_error(server_url: str, wrong: str) -> None:
    urls = {
        "password": server_url.replace(QUOTED_PASSWORD, "wrong"),
        "database": server_url + "_nowhere",
        "option": server_url + "?sslmode=perhaps",
    }
    async with open_store(urls[wrong]) as store:
        await out_of_reach(store, CALLS["check"])


@pytest.mark.parametrize("call", [CALLS["save_turn"], CALLS["load_chain"]], ids=["save_turn", "load_chain"])
async def test_every_call_on_a_server_that_falls_silent_answers_store_error_in_time(
    postgresql: PostgresqlServer, server_url: str, proxy: TcpProxy, call: Call
) -> None:
    async with open_store(postgresql.url(database_of(server_url), proxy.port), IMPATIENT) as store:
        await store.check()
        proxy.silent = True
        await out_of_reach(store, call)
        await out_of_reach(store, call)
        proxy.silent = False
        await call(store)


async def test_server_that_has_fallen_silent_is_not_asked_to_undo_a_transaction(
    postgresql: PostgresqlServer, server_url: str, proxy: TcpProxy
) -> None:
    """That would be to wait as long again."""
    asked: list[str] = []

    async def listen(transaction: Transaction) -> None:
        assert isinstance(transaction, PostgresqlTransaction)
        transaction.connection.add_query_logger(lambda asking: asked.append(asking.query))

    limits = StoreLimits(statement_timeout_s=0.3, max_connections=1)
    async with open_store(postgresql.url(database_of(server_url), proxy.port), limits) as store:
        await store._database.write("listens", listen)
        proxy.silent = True
        await out_of_reach(store, CALLS["delete_turn"])
        proxy.silent = False
        await store.check()
    assert asked == ["COMMIT", "BEGIN"]


async def test_restart_of_the_server_fails_no_call_that_begins_after_it(mortal: PostgresqlServer) -> None:
    async with open_store(mortal.url()) as store:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(8):
                tasks.create_task(store.check())
        await run_in_thread(mortal.kill)
        for _ in range(2):
            await out_of_reach(store, CALLS["save_turn"])
        await run_in_thread(mortal.start)
        async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
            for number in range(8):
                tasks.create_task(store.save_turn("t", stored_turn(f"restart_{number}")))
        assert await store.load_response("t", "restart_7") == stored_turn("restart_7").response


async def test_server_killed_while_turns_are_saved_has_every_turn_that_was_told(mortal: PostgresqlServer) -> None:
    told: list[str] = []
    enough = asyncio.Event()

    async def save(store: Store, name: str) -> None:
        for number in range(1000):
            response_id = f"{name}_{number}"
            previous_id = f"{name}_{number - 1}" if number else None
            try:
                await store.save_turn("t", stored_turn(response_id, previous_id))
            except StoreError:
                return
            told.append(response_id)
            if number == 10:
                enough.set()

    async with open_store(mortal.url()) as store:
        for kill in range(3):
            async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
                for name in "abcd":
                    tasks.create_task(save(store, f"{name}{kill}"))
                await enough.wait()
                enough.clear()
                await run_in_thread(mortal.kill)
            await run_in_thread(mortal.start)
        for response_id in told:
            assert await store.load_response("t", response_id) is not None
    stored = mortal.sql("SELECT id FROM responses WHERE id ~ '^[abcd][012]_'").split()
    assert set(told) <= set(stored)
    assert len(stored) <= len(told) + 3 * 4  # an end that nobody heard of


async def test_turn_that_another_transaction_holds_answers_store_error_after_the_lock_time(
    postgresql: PostgresqlServer, server_url: str
) -> None:
    async with open_store(server_url, IMPATIENT) as store:
        async with locked(server_url, f"{', '.join(metadata.tables)} IN ACCESS EXCLUSIVE MODE"):
            for call in CALLS.values():
                await out_of_reach(store, call)
        await store.save_turn("t", stored_turn("resp_1"))


async def test_statement_that_takes_too_long_is_ended_by_the_server(
    postgresql: PostgresqlServer, server_url: str
) -> None:
    async with open_store(server_url, IMPATIENT) as store:
        slow = select(func.pg_sleep(60))
        with pytest.raises(StoreError), capture_logs() as logs:
            await store._database.write("slow", lambda transaction: transaction.rows(slow))
        assert logs[0]["cause"] == "QueryCanceledError: canceling statement due to statement timeout"
        await store.check()


async def test_transaction_of_a_process_that_stands_still_ends(server_url: str) -> None:
    async with open_store(server_url, IMPATIENT) as store:
        with pytest.raises(StoreError), capture_logs():
            await stand_still_in_a_transaction(store)
        await store.check()


async def stand_still_in_a_transaction(store: SqlStore) -> None:
    """Until the server ends it."""
    closed = asyncio.Event()

    async def stand_still(transaction: Transaction) -> None:
        assert isinstance(transaction, PostgresqlTransaction)
        transaction.connection.add_termination_listener(lambda _: closed.set())
        await closed.wait()

    async with asyncio.timeout(5):
        await store._database.write("stands still", stand_still)


async def test_store_has_no_more_connections_than_its_limit_and_calls_wait_for_one(
    postgresql: PostgresqlServer, server_url: str
) -> None:
    before = sessions(postgresql, server_url)
    async with open_store(server_url, StoreLimits(max_connections=3)) as store:
        async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
            for number in range(20):
                tasks.create_task(store.save_turn("t", stored_turn(f"resp_{number}")))
                tasks.create_task(store.load_chain("t", f"resp_{number}"))
        assert sessions(postgresql, server_url) - before == 3


async def test_call_that_finds_no_free_connection_answers_store_error(server_url: str) -> None:
    limits = IMPATIENT.model_copy(update={"statement_timeout_s": 30.0})
    async with open_store(server_url, limits) as store:
        held, free = asyncio.Barrier(limits.max_connections + 1), asyncio.Event()

        async def hold(_: Transaction) -> None:
            await held.wait()
            await free.wait()

        async with asyncio.TaskGroup() as tasks:
            for _ in range(limits.max_connections):
                tasks.create_task(store._database.write("held", hold))
            await held.wait()
            for call in CALLS.values():
                await out_of_reach(store, call)
            free.set()
        await store.check()


async def test_cancelled_save_writes_nothing_and_the_next_one_succeeds(server_url: str) -> None:
    async with open_store(server_url) as store:
        async with locked(server_url, "responses IN EXCLUSIVE MODE"):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await store.save_turn("t", stored_turn("resp_1"))
        assert await store.load_chain("t", "resp_1") == []
        await store.save_turn("t", stored_turn("resp_2"))
        assert await store.load_chain("t", "resp_2") == [stored_turn("resp_2")]


async def test_refused_row_is_not_shown_in_the_log(postgresql: PostgresqlServer) -> None:
    url = postgresql.new_database()
    await run_in_thread(lambda: migrate(url))
    postgresql.sql(f"ALTER TABLE responses ADD CHECK (tenant <> '{CANARY}')", database_of(url))
    async with open_store(url) as store:
        await out_of_reach(store, lambda store: store.save_turn(CANARY, stored_turn("resp_1", user=CANARY)))


async def test_turn_whose_items_cannot_be_found_later_is_not_stored(postgresql: PostgresqlServer) -> None:
    url = postgresql.new_database()
    await run_in_thread(lambda: migrate(url))
    postgresql.sql("ALTER TABLE items ADD CHECK (id <> 'msg_2')", database_of(url))
    async with open_store(url) as store:
        await out_of_reach(store, lambda store: store.save_turn("t", turn_of_items("resp_1", ["msg_1", "msg_2"], [])))
        assert await store.load_chain("t", "resp_1") == []


async def test_load_at_any_depth_is_one_round_trip_and_so_is_a_save(
    postgresql: PostgresqlServer, server_url: str, proxy: TcpProxy
) -> None:
    async with open_store(postgresql.url(database_of(server_url), proxy.port), StoreLimits(max_connections=1)) as store:
        for number in range(50):
            before = proxy.round_trips
            turn = stored_turn(f"resp_{number}", f"resp_{number - 1}" if number else None)
            await store.save_turn("t", turn)
        saves = proxy.round_trips - before
        await store.load_chain("t", "resp_0")
        loads = []
        for depth in (1, 10, 50):
            before = proxy.round_trips
            assert len(await store.load_chain("t", f"resp_{depth - 1}")) == depth
            loads.append(proxy.round_trips - before)
    assert (saves, loads) == (1, [1, 1, 1])


async def test_turn_of_a_conversation_is_one_round_trip_to_get_it_and_seven_to_save(
    postgresql: PostgresqlServer, server_url: str, proxy: TcpProxy
) -> None:
    async with open_store(postgresql.url(database_of(server_url), proxy.port), StoreLimits(max_connections=1)) as store:
        await store.conversations.create("t", Conversation("conv_1", 0, {}), [])
        seen = []
        for number in range(20):
            before = proxy.round_trips
            lease = await store.conversations.lease("t", "conv_1", "one", 60)
            held = proxy.round_trips
            turn = turn_of_items(f"resp_{number}", [f"msg_{number}"], [f"msg_{number}a"])
            await store.save_turn("t", turn, lease)
            seen.append((held - before, proxy.round_trips - held))
    assert seen[-1] == (1, 7)


@pytest.mark.parametrize(
    ("statement", "parameters"),
    [
        (chain_statement(DEFAULT_LIMITS), {"tenant": "t", "id": "resp_9"}),
        (items_statement(DEFAULT_LIMITS), {"tenant": "t", "ids": ["msg_1", "msg_2"]}),
    ],
    ids=["chain", "items"],
)
async def test_chain_and_items_are_found_by_key_alone(
    postgresql: PostgresqlServer, server_url: str, statement: Select[Any], parameters: dict[str, object]
) -> None:
    database = database_of(server_url)
    postgresql.sql(
        "INSERT INTO responses SELECT 't', 'resp_' || n, 'resp_' || n - 1, n, 'completed', '[]', '{}' "
        "FROM generate_series(1, 20000) n; "
        "INSERT INTO items SELECT 't', 'msg_' || n, 'resp_' || n FROM generate_series(1, 20000) n; ANALYZE",
        database,
    )
    asked = statement.compile(dialect=words_of_asyncpg.dialect()).construct_expanded_state(parameters).statement  # type: ignore[no-untyped-call]  # SQLAlchemy leaves it untyped
    plan = postgresql.sql(f"EXPLAIN (GENERIC_PLAN) {asked}", database)
    assert "Index Scan using responses_pkey" in plan
    assert "Seq Scan" not in plan
