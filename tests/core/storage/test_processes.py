"""Several processes, several stores, one database."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from attache_core.storage.engine import open_store
from attache_core.testing.store_contract import stored_turn
from postgresql_server import PostgresqlServer

SAVES = 10
NAMES = ("a", "b", "c")
PROGRAM = """
import asyncio, sys
from attache_core.storage.engine import open_store
from attache_core.storage.migrate import migrate
from attache_core.testing.store_contract import stored_turn

async def save(url, name, count):
    async with open_store(url) as store:
        for number in range(count):
            await store.save_turn("t", stored_turn(f"{name}_{number}", f"{name}_{number - 1}" if number else None))
            await store.save_turn("t", stored_turn(f"shared_{number}"))

url, name, count = sys.argv[1:]
migrate(url)
asyncio.run(save(url, name, int(count)))
"""


@pytest.fixture(params=["sqlite", "postgresql"])
def new_url(request: pytest.FixtureRequest, tmp_path: Path, postgresql: PostgresqlServer) -> str:
    """A database without tables."""
    return f"sqlite:///{tmp_path}/attache.db" if request.param == "sqlite" else postgresql.new_database()


async def test_processes_that_start_together_migrate_once_and_write_at_once(new_url: str) -> None:
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        runs = [tasks.create_task(_run(new_url, name)) for name in NAMES]
    assert [run.result() for run in runs] == [(0, "")] * len(NAMES)
    async with open_store(new_url) as store:
        for name in NAMES:
            chain = await store.load_chain("t", f"{name}_{SAVES - 1}")
            assert [turn.response["id"] for turn in chain] == [f"{name}_{number}" for number in range(SAVES)]
        for number in range(SAVES):
            assert await store.load_chain("t", f"shared_{number}") == [stored_turn(f"shared_{number}")]


async def test_turn_saved_by_one_store_is_loaded_by_another_at_once(each_url: str) -> None:
    async with open_store(each_url) as one, open_store(each_url) as other:
        for number in range(10):
            turn = stored_turn(f"resp_{number}")
            assert await other.load_response("t", f"resp_{number}") is None
            await one.save_turn("t", turn)
            assert await other.load_chain("t", f"resp_{number}") == [turn]


async def test_two_stores_writing_one_database_at_once_lose_nothing(each_url: str) -> None:
    async with open_store(each_url) as one, open_store(each_url) as other:
        async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
            for number in range(20):
                tasks.create_task(one.save_turn("t", stored_turn(f"a_{number}")))
                tasks.create_task(other.save_turn("t", stored_turn(f"b_{number}")))
        for response_id in (f"{name}_{number}" for name in "ab" for number in range(20)):
            assert await one.load_chain("t", response_id) == [stored_turn(response_id)]


async def _run(url: str, name: str) -> tuple[int | None, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM, url, name, str(SAVES), stderr=asyncio.subprocess.PIPE
    )
    try:
        _, errors = await process.communicate()
        return process.returncode, errors.decode()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
