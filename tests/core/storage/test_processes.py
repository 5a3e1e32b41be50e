"""Several processes, several stores, one file."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from attache_core.storage.engine import open_store
from attache_core.testing.store_contract import stored_turn

SAVES = 10
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


async def test_two_processes_migrate_and_write_one_file_at_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/attache.db"
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        runs = [tasks.create_task(_run(url, name)) for name in ("a", "b")]
    assert [run.result() for run in runs] == [(0, ""), (0, "")]
    async with open_store(url) as store:
        for name in ("a", "b"):
            chain = await store.load_chain("t", f"{name}_{SAVES - 1}")
            assert [turn.response["id"] for turn in chain] == [f"{name}_{number}" for number in range(SAVES)]
        for number in range(SAVES):
            assert await store.load_chain("t", f"shared_{number}") == [stored_turn(f"shared_{number}")]


async def test_turn_saved_by_one_store_is_loaded_by_another_at_once(url: str) -> None:
    async with open_store(url) as one, open_store(url) as other:
        for number in range(10):
            turn = stored_turn(f"resp_{number}")
            assert await other.load_response("t", f"resp_{number}") is None
            await one.save_turn("t", turn)
            assert await other.load_chain("t", f"resp_{number}") == [turn]


async def test_two_stores_writing_one_file_at_once_lose_nothing(url: str) -> None:
    async with open_store(url) as one, open_store(url) as other:
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
