"""What bringing a schema up to date means on every kind of database: all is kept, or nothing is changed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, inspect, text

from attache_core.errors import ConfigError
from attache_core.json_codec import Json, encode
from attache_core.storage import StoredTurn, StoreLimits
from attache_core.storage.engine import open_store
from attache_core.storage.migrate import _backend, _config, migrate, prepare, verify
from attache_core.storage.migrations import versions
from attache_core.storage.settings import StorageSettings
from attache_core.storage.tables import metadata
from attache_core.storage.url import place_of
from attache_core.testing.store_contract import AWKWARD, stored_turn
from postgresql_server import PASSWORD, QUOTED_PASSWORD, PostgresqlServer

FIRST_SCHEMA: tuple[tuple[str, str | None, int | None, str, list[Json], Json], ...] = (
    ("resp_1", None, 1, "completed", [{"id": "msg_1", "said": AWKWARD}], {"output": [{"id": "fc_1"}], "odd": AWKWARD}),
    ("resp_2", "resp_1", 2, "completed", [{"id": "msg_2"}, {"no": "id"}], {"output": [{"id": "msg_3"}]}),
    ("resp_3", "resp_1", 3, "incomplete", [], {"output": []}),
    ("resp_4", "resp_2", None, "failed", [{"id": "msg_1"}], {"output": None}),
)
"""Rows as the first schema held them: id, previous id, time, status, input, and the rest of the response."""


@pytest.fixture(params=["sqlite", "postgresql"])
def new_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database without tables."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/attache.db"
    server: PostgresqlServer = request.getfixturevalue("postgresql")
    return server.new_database()


def within_lock(url: str, work: Callable[[Connection], None]) -> None:
    place = place_of(url)
    _backend(place).locked(place, StoreLimits(), work)


def executing(statement: str) -> Callable[[Connection], None]:
    def work(connection: Connection) -> None:
        connection.execute(text(statement))

    return work


def tables(url: str) -> set[str]:
    found: set[str] = set()
    within_lock(url, lambda connection: found.update(inspect(connection).get_table_names()))
    return found


def make_first_schema(connection: Connection) -> None:
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, "0001")
    insert = "INSERT INTO responses VALUES ('t', :id, :previous_id, :created_at, :status, :input, :response)"
    for response_id, previous_id, created_at, status, given, response in FIRST_SCHEMA:
        whole = {"id": response_id, "previous_response_id": previous_id, "status": status, **response}
        facts = {"id": response_id, "previous_id": previous_id, "created_at": created_at, "status": status}
        connection.execute(text(insert), {**facts, "input": encode(given), "response": encode(whole)})


def first_turn(number: int) -> StoredTurn:
    response_id, previous_id, _, status, given, response = FIRST_SCHEMA[number]
    return StoredTurn(
        {"id": response_id, "previous_response_id": previous_id, "status": status, **response}, list(given)
    )


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(ConfigError) as refused:
        call()
    for secret in (PASSWORD, QUOTED_PASSWORD):
        assert secret not in f"{refused.value.message} {refused.value.__cause__!r}"
    return refused.value.message


def test_database_of_the_first_schema_keeps_every_conversation(new_url: str) -> None:
    within_lock(new_url, make_first_schema)
    migrate(new_url)

    async def read() -> None:
        async with open_store(new_url) as store:
            one, two, three, four = (first_turn(number) for number in range(4))
            assert await store.load_chain("t", "resp_4") == [one, two, four]
            assert await store.load_chain("t", "resp_3") == [one, three]
            assert await store.load_response("t", "resp_1") == one.response
            found = await store.load_items("t", ["msg_1", "fc_1", "msg_2", "msg_3"])
            assert found == {
                "msg_1": one.input[0],
                "fc_1": {"id": "fc_1"},
                "msg_2": {"id": "msg_2"},
                "msg_3": {"id": "msg_3"},
            }
            await store.save_turn("t", stored_turn("resp_5", "resp_3"))
            assert await store.load_chain("t", "resp_5") == [one, three, stored_turn("resp_5", "resp_3")]

    asyncio.run(read())


def test_migrated_schema_is_the_one_that_the_code_expects(new_url: str) -> None:
    migrate(new_url)
    migrate(new_url)
    differences: list[object] = []

    def compare(connection: Connection) -> None:
        options = {"compare_type": True, "compare_server_default": True}
        differences.extend(compare_metadata(MigrationContext.configure(connection, opts=options), metadata))

    within_lock(new_url, compare)
    assert differences == []


def test_change_that_fails_leaves_a_foreign_database_as_it_was(new_url: str) -> None:
    within_lock(new_url, executing("CREATE TABLE items (theirs INTEGER)"))
    assert "items" in refusal(lambda: migrate(new_url))
    assert tables(new_url) == {"items"}


def test_newer_schema_is_refused_and_left_alone(new_url: str) -> None:
    migrate(new_url)
    within_lock(new_url, executing("UPDATE alembic_version SET version_num = '9999'"))
    for call in (migrate, verify):
        assert refusal(partial(call, new_url)) == (
            f"storage: {place_of(new_url).name} was written by a newer version (its schema is 9999); "
            "install that version, or name another place"
        )


def test_verify_changes_nothing_and_says_what_to_do(new_url: str) -> None:
    name = place_of(new_url).name
    advice = "run `attache migrate`, or set `migrate: apply`"
    within_lock(new_url, lambda _: None)
    assert refusal(lambda: verify(new_url)) == f"storage: {name} has no tables yet; {advice}"
    assert tables(new_url) == set()
    within_lock(new_url, make_first_schema)
    head = max(path.name[1:5] for path in Path(versions.__path__[0]).glob("r*.py"))
    assert refusal(lambda: verify(new_url)) == f"storage: {name} has the schema 0001, and {head} is needed; {advice}"
    migrate(new_url)
    verify(new_url)


def test_verify_of_a_file_that_is_not_there_makes_none(tmp_path: Path) -> None:
    assert "cannot be used as the database" in refusal(lambda: verify(f"sqlite:///{tmp_path}/attache.db"))
    assert list(tmp_path.iterdir()) == []


def test_prepare_does_what_the_settings_say(new_url: str) -> None:
    refusal(lambda: prepare(StorageSettings.model_validate({"url": new_url, "migrate": "verify"})))
    prepare(StorageSettings.model_validate({"url": new_url}))
    prepare(StorageSettings.model_validate({"url": new_url, "migrate": "verify"}))


def test_start_waits_for_another_that_is_migrating_and_not_for_ever(new_url: str) -> None:
    def try_meanwhile(_: Connection) -> None:
        with pytest.raises(ConfigError, match="cannot be used as the database"):
            _in_thread(lambda: migrate(new_url, StoreLimits(migration_timeout_s=0.5)))

    within_lock(new_url, try_meanwhile)
    migrate(new_url)


def _in_thread(work: Callable[[], None]) -> None:
    """Where no event loop runs."""
    with ThreadPoolExecutor(1) as threads:
        threads.submit(work).result()


@pytest.mark.parametrize("wrong", ["password", "host", "database", "option"])
def test_server_that_cannot_be_used_is_named_without_its_password(
    postgresql: PostgresqlServer, unused_tcp_port: int, wrong: str
) -> None:
    url, says = {
        "password": (postgresql.url().replace("canary", "kanary"), "password authentication failed"),
        "host": (postgresql.url(port=unused_tcp_port), "Connect call failed"),
        "database": (postgresql.url("nowhere"), 'database "nowhere" does not exist'),
        "option": (postgresql.url() + "?sslmode=perhaps", "`sslmode` parameter must be one of"),
    }[wrong]
    for call in (migrate, verify):
        message = refusal(partial(call, url))
        assert message.startswith(f"storage: {place_of(url).name} cannot be used as the database: ")
        assert says in message
