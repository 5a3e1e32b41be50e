"""After load, nothing is left: no task, no socket, no memory that grows with the number of turns."""

from __future__ import annotations

import asyncio

import psutil

from attache_core.testing.model_script import call, function_calls, text
from attache_core.testing.model_server import ReceivedRequest
from e2e.stage import Stage

TURNS = 200
GROWTH_BYTES = 8 * 1024 * 1024
"""Allocators and caches settle; 400 turns that each kept their 20 KB would be as much."""

POOLED_SOCKETS = 16
"""Idle connections to the tool server and the loop listener come and go; 400 turns that each kept one would be more."""

POOLED_THREADS = 6
"""The event loop's own thread pool (CPUs and four) may still be filling."""


async def test_many_turns_leave_no_growth_in_sockets_threads_or_memory(stage: Stage, stream: bool) -> None:
    def answer(request: ReceivedRequest) -> object:
        is_result = request.body["input"][-1]["type"] == "function_call_output"
        return text("Done.") if is_result else function_calls(call("echo", {"text": "x" * 1000}))

    stage.model.set(answer)  # type: ignore[arg-type]  # a Reply either way
    await run(stage, TURNS, clients=16, stream=stream)
    before = await settled(stage)

    await run(stage, TURNS, clients=1, stream=stream)
    await run(stage, TURNS, clients=16, stream=stream)

    after = await settled(stage)
    assert after.sockets <= before.sockets + POOLED_SOCKETS
    assert after.threads <= before.threads + POOLED_THREADS
    assert after.memory <= before.memory + GROWTH_BYTES
    assert await stage.stat("cluster.workers.upstream_rq_active") == 0


async def run(stage: Stage, turns: int, *, clients: int, stream: bool) -> None:
    body = {"input": [{"type": "message", "role": "user", "content": "y" * 1000}], "tools": [stage.mcp_tool()]}

    async def client(share: int) -> None:
        for _ in range(share):
            answer = await stage.ask(**body, stream=stream)
            assert answer.body["status"] == "completed"

    async with asyncio.TaskGroup() as tasks:
        for _ in range(clients):
            tasks.create_task(client(turns // clients))


class Footprint:
    def __init__(self, workers: list[psutil.Process]) -> None:
        self.sockets = sum(process.num_fds() for process in workers)
        self.threads = sum(process.num_threads() for process in workers)
        self.memory = sum(process.memory_info().rss for process in workers)


async def settled(stage: Stage) -> Footprint:
    """What the workers hold once no turn is under way."""
    await stage.wait_until_idle()
    return Footprint([psutil.Process(pid) for pid in stage.gateway.workers.pids])
