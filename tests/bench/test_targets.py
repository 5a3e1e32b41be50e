"""What is measured really starts, answers, and is counted: the model server and Envoy alone, as processes."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import httpx
import pytest
from benchmarks.measure import measure_target
from benchmarks.plan import Cell, Plan, cells_of
from benchmarks.processes import usage_of
from benchmarks.targets import Sizes, Target, running_envoy, running_mcp_server, running_model, running_target
from benchmarks.tool_calls import measure_calls

PLAN = Plan(rounds=1, duration_s=0.05, warmup_s=0.01, connections=(1, 2))


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
    async with asyncio.timeout(20), running_model() as model, running_target("envoy", model, Sizes()) as target:
        result = await measure_target(target, model, PLAN, None)
    measured = [(cell.kind, cell.store, cell.connections) for cell in result.cells]
    assert measured == [(cell.kind, cell.store, cell.connections) for cell in cells_of(PLAN, target)]
    assert [cell.errors for cell in result.cells] == [0] * 5
    assert (result.chain, result.tool, result.processes) == (None, None, 1)


@pytest.mark.e2e
async def test_turns_with_a_call_are_measured_without_error() -> None:
    async with (
        asyncio.timeout(60),
        running_model() as model,
        running_mcp_server() as mcp_url,
        running_target("fused", model, Sizes()) as fused,
    ):
        calls = await measure_calls(model, [fused], mcp_url, 2)
    measured = [(result.target, result.store, result.errors) for result in calls.gateways]
    assert (calls.repetitions, measured) == (2, [("fused", False, 0), ("fused", True, 0)])


def test_stored_cells_are_only_for_what_keeps_state() -> None:
    stateless = Target("envoy", "http://127.0.0.1:1", 1)
    stateful = Target("fused", "http://127.0.0.1:1", 1)
    assert [cell for cell in cells_of(PLAN, stateless) if cell.store] == []
    assert [cell for cell in cells_of(PLAN, stateful) if cell.store] == [
        Cell("json", store=True, connections=1),
        Cell("json", store=True, connections=2),
        Cell("sse", store=True, connections=1),
        Cell("sse", store=True, connections=2),
    ]


async def test_usage_counts_a_process_and_its_children() -> None:
    script = "import subprocess; child = subprocess.Popen(['cat']); print('up', flush=True); child.wait()"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", script), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    async with asyncio.timeout(5):
        await process.stdout.readline()
        usage = usage_of(process.pid)
        process.stdin.close()
        await process.wait()
    assert (usage.processes, usage.rss_bytes > 0, usage.cpu_s >= 0.0) == (2, True, True)
    assert usage_of(process.pid).processes == 0
