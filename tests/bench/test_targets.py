"""What is measured really starts, answers, and is counted: the model server and Envoy alone, as processes."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from time import perf_counter

import httpx
import pytest
from benchmarks.measure import measure_target
from benchmarks.plan import Cell, Plan, cells_of
from benchmarks.processes import Memory, cpu_s_of, memory_of
from benchmarks.targets import (
    Sizes,
    Target,
    TargetStartError,
    running_envoy,
    running_mcp_server,
    running_model,
    running_target,
)
from benchmarks.tool_calls import first_call_ms, measure_calls

PLAN = Plan(
    rounds=1,
    duration_s=0.05,
    warmup_s=0.01,
    connections=(1, 2),
    paced_streams=(3,),
    paced_s=0.2,
    memory_streams=3,
)


@pytest.mark.e2e
async def test_envoy_alone_routes_one_listener_and_answers_the_other(tmp_path: Path) -> None:
    async with asyncio.timeout(20), running_model() as model, running_envoy(model.url, tmp_path, Sizes()) as envoy:
        _, routed, answered = envoy
        async with httpx.AsyncClient(trust_env=False, timeout=5.0) as client:
            models = (await client.get(f"{routed}/v1/models")).json()
            direct = (await client.post(answered)).json()
    assert (models["object"], direct) == ("list", {"object": "response"})


@pytest.mark.e2e
async def test_every_cell_of_envoy_alone_is_measured_without_error() -> None:
    async with asyncio.timeout(60), running_model() as model, running_target("envoy", model, Sizes()) as target:
        result = await measure_target(target, model, PLAN, None, perf_counter())
    measured = [(cell.kind, cell.store, cell.connections) for cell in result.cells]
    assert measured == [(cell.kind, cell.store, cell.connections) for cell in cells_of(PLAN, target)]
    assert (result.errors, result.first_call_ms, result.after.processes) == (0, None, 1)
    (paced,) = result.paced
    assert (paced.streams, paced.store, paced.delay_p50_ms > 0, paced.target_cores > 0) == (3, False, True, True)
    assert result.memory is not None
    assert result.memory.idle.pss > 0


async def test_target_that_does_not_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.targets.BYPASSING", "upstreams: {{none: {url}}}")
    with pytest.raises(TargetStartError, match=r"gateway\.yaml:1"):
        async with running_target("bypass", Target("direct", "http://127.0.0.1:1", 1), Sizes()):
            pass


@pytest.mark.e2e
async def test_turns_with_a_call_are_measured_and_a_first_one_that_fails_is_an_error() -> None:
    async with (
        asyncio.timeout(120),
        running_model() as model,
        running_mcp_server() as mcp_url,
        running_target("fused", model, Sizes(envoy_threads=1, workers=1)) as fused,
    ):
        first_ms = await first_call_ms(fused, mcp_url)
        with pytest.raises(RuntimeError, match="fused fails its first MCP call"):
            await first_call_ms(fused, f"{mcp_url}/nowhere")
        calls = await measure_calls(model, [fused], mcp_url, 2)
    measured = [(result.target, result.store, result.errors) for result in calls.gateways]
    assert (first_ms > 0, calls.repetitions, measured) == (True, 2, [("fused", False, 0), ("fused", True, 0)])


def test_stored_cells_are_only_for_what_keeps_state() -> None:
    stateless = Target("envoy", "http://127.0.0.1:1", 1)
    bypass = Target("bypass", "http://127.0.0.1:1", 1)
    stateful = Target("fused", "http://127.0.0.1:1", 1)
    assert [cell for cell in (*cells_of(PLAN, stateless), *cells_of(PLAN, bypass)) if cell.store] == []
    assert [cell for cell in cells_of(PLAN, stateful) if cell.store] == [
        Cell("json", store=True, connections=1),
        Cell("json", store=True, connections=2),
        Cell("sse", store=True, connections=1),
        Cell("sse", store=True, connections=2),
    ]


async def test_cpu_and_memory_are_those_of_a_process_and_its_children() -> None:
    busy = "import time\nwhile time.process_time() < 0.2: pass\nprint('up', flush=True)\n"
    start = (
        "import subprocess, sys\nchild = subprocess.Popen([sys.executable, '-c', sys.argv[1]], stdout=subprocess.PIPE)"
    )
    script = f"{start}\nchild.stdout.readline()\n{busy}child.wait()"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", script, f"{busy}input()"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    async with asyncio.timeout(20):
        await process.stdout.readline()
        cpu_s, memory = cpu_s_of(process.pid), memory_of(process.pid)
        process.stdin.close()
        await process.wait()
    assert (memory.processes, 0 < memory.uss <= memory.pss, cpu_s >= 0.4) == (2, True, True)
    assert (memory_of(process.pid), cpu_s_of(process.pid)) == (Memory(0, 0, 0, 0), 0.0)


async def test_cpu_of_threads_that_have_ended_is_counted() -> None:
    script = (
        "import threading, time\n"
        "def busy():\n"
        "    while time.process_time() < 0.2: pass\n"
        "thread = threading.Thread(target=busy); thread.start(); thread.join(); print('up', flush=True); input()"
    )
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", script), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    async with asyncio.timeout(20):
        await process.stdout.readline()
        cpu_s = cpu_s_of(process.pid)
        process.stdin.close()
        await process.wait()
    assert cpu_s >= 0.2
