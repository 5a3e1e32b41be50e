"""Worker processes: which of them a turn gets, and what one that is stuck does to the turns of the others."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from attache_core.testing.model_script import held, text
from attache_envoy.compile.sockets import Sockets
from attache_envoy.run.settings import RunSettings
from e2e.stage import WAIT_S, Stage, open_stage
from e2e.test_silence import still_waits, stopped

TURNS = 12
LEAVING = 3000
"""Clients that leave while nothing is read of what Envoy says of them: more than Envoy lets wait by default."""

ONE_THREAD = RunSettings(envoy_concurrency=1)
"""Envoy's threads choose at once and without asking each other: only with one are counts exact."""


async def test_turns_are_spread_evenly_over_the_workers(placement: str, stream: bool, tmp_path: Path) -> None:
    async with open_stage(placement, tmp_path, workers=3, run=ONE_THREAD) as stage:
        await every_worker_is_connected(stage)
        answered = asyncio.Event()
        stage.model.set(lambda _: held(answered, text("Fine.")))
        async with asyncio.TaskGroup() as tasks:
            turns = [tasks.create_task(stage.ask(input="Hi", stream=stream)) for _ in range(TURNS)]
            await stage.model.wait_until_asked(TURNS)
            streams = await streams_of_workers(stage)
            answered.set()

    assert min(streams) >= TURNS // 3
    assert max(streams) - min(streams) <= 1
    assert [turn.result().text for turn in turns] == ["Fine."] * TURNS


async def test_worker_that_is_stuck_holds_up_its_own_turns_alone(stream: bool, tmp_path: Path) -> None:
    async with open_stage("fused", tmp_path, workers=2, run=ONE_THREAD) as stage:
        answered = asyncio.Event()
        stage.model.set(lambda asked: held(answered, text("Fine.")) if "wait" in str(asked.body) else text("Hello."))
        async with asyncio.TaskGroup() as tasks:
            stuck = tasks.create_task(stage.ask(input="wait", stream=stream))
            await stage.model.wait_until_asked(1)
            with stopped(await the_worker_with_a_turn(stage)):
                other = tasks.create_task(stage.ask(input="wait", stream=stream))
                await stage.model.wait_until_asked(2)
                answered.set()
                assert (await other).text == "Fine."
                later = [await stage.ask(input="Hi", stream=stream) for _ in range(10)]
                await still_waits(stuck, 0)

    assert [answer.text for answer in later] == ["Hello."] * 10
    assert stuck.result().text == "Fine."


async def test_clients_that_leave_while_a_worker_is_stuck_end_no_other_turn(tmp_path: Path) -> None:
    async with open_stage("fused", tmp_path, workers=1, run=ONE_THREAD) as stage:
        answered = asyncio.Event()
        stage.model.set(lambda _: held(answered, text("Fine.")))
        async with asyncio.TaskGroup() as tasks:
            turn = tasks.create_task(stage.ask(input="Hi"))
            await stage.model.wait_until_asked(1)
            with stopped(stage.gateway.workers.pids[0]):
                for _ in range(LEAVING // 50):
                    async with asyncio.TaskGroup() as clients:
                        for _ in range(50):
                            clients.create_task(begin_and_leave(stage.gateway.url))
                async with asyncio.timeout(WAIT_S):
                    while (await facts_of_workers(stage, "rq_total"))[0] <= LEAVING:
                        pass
            answered.set()

    assert turn.result().text == "Fine."


async def begin_and_leave(url: str) -> None:
    """Begin a turn, and leave before all of it was sent."""
    target = urlsplit(url)
    _, writer = await asyncio.open_connection(target.hostname, target.port)
    writer.write(b"POST /v1/responses HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{")
    await writer.drain()
    writer.transport.abort()


async def every_worker_is_connected(stage: Stage) -> None:
    """Envoy counts no stream that waits for a connection: a burst of turns goes to the worker that it connects to."""
    stage.model.set(lambda _: text("Hello."))
    async with asyncio.timeout(WAIT_S):
        while 0 in await facts_of_workers(stage, "cx_total"):
            await stage.ask(input="Hi")


async def streams_of_workers(stage: Stage) -> Sequence[int]:
    """How many streams Envoy has at each worker now."""
    return await facts_of_workers(stage, "rq_active")


async def facts_of_workers(stage: Stage, name: str) -> Sequence[int]:
    """What Envoy counts by this name, for each worker."""
    sockets = Sockets(stage.gateway.run_dir)
    workers = [re.escape(str(sockets.worker(index))) for index in range(len(stage.gateway.workers.pids))]
    clusters = await stage.gateway.admin.clusters()
    found = (re.search(rf"^workers::{worker}::{name}::(\d+)$", clusters, re.MULTILINE) for worker in workers)
    return [int(match[1]) for match in found if match]


async def the_worker_with_a_turn(stage: Stage) -> int:
    """The process that has the only turn there is."""
    return stage.gateway.workers.pids[list(await streams_of_workers(stage)).index(1)]
