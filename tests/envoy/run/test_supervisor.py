"""A whole gateway with real processes: what it does when parts die, and how it drains."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import psutil
import pytest

from attache_core.testing.model_script import stalls_after, text
from attache_core.testing.model_server import ModelServer, running_model_server
from attache_envoy.gateway import Gateway, default_gateway, with_options
from attache_envoy.run.failure import GatewayFailed
from attache_envoy.run.settings import RunSettings
from attache_envoy.run.supervisor import RunningGateway, running_gateway

pytestmark = pytest.mark.e2e

SETTINGS = RunSettings(grace_s=4, envoy_concurrency=1)
HELLO = {"model": "attache-demo", "input": "Hello", "stream": True}
WAIT_S = 5


def gateway_for(upstream: str, directory: Path) -> Gateway:
    return with_options(
        default_gateway(upstream), listen="127.0.0.1:0", workers=1, storage=f"sqlite:///{directory / 'turns.db'}"
    )


@pytest.fixture
async def model() -> AsyncIterator[ModelServer]:
    async with running_model_server() as server:
        yield server


async def test_workers_that_die_too_often_end_the_gateway(model: ModelServer, tmp_path: Path) -> None:
    settings = RunSettings(max_deaths=0, envoy_concurrency=1)
    left: list[int | Path] = []

    async def kill_the_worker() -> None:
        async with running_gateway(gateway_for(model.url, tmp_path), settings) as running, asyncio.timeout(WAIT_S):
            left.extend([running.run_dir, running.envoy_pid, *running.workers.pids])
            os.kill(running.workers.pids[0], signal.SIGKILL)
            await asyncio.Event().wait()

    with pytest.raises(GatewayFailed) as caught:
        await kill_the_worker()
    assert str(caught.value) == (
        "Workers died more than 0 times within 60 s; the last was worker 0, with signal SIGKILL."
        " What they logged before says why."
    )
    assert len(left) == 3
    assert [each for each in left if (each.exists() if isinstance(each, Path) else psutil.pid_exists(each))] == []


async def test_an_error_in_the_block_leaves_as_it_is(model: ModelServer, tmp_path: Path) -> None:
    with pytest.raises(LookupError, match=r"^mine$"):
        async with running_gateway(gateway_for(model.url, tmp_path), SETTINGS, until="listening"):
            raise LookupError("mine")


async def test_a_gateway_that_does_not_get_ready_is_a_failure(tmp_path: Path) -> None:
    settings = RunSettings(ready_s=0.1, envoy_concurrency=1)
    with pytest.raises(GatewayFailed, match=r"^The gateway was not ready within 0\.1 s\.$"):
        async with running_gateway(gateway_for("http://127.0.0.1:9", tmp_path), settings):
            pass


@asynccontextmanager
async def streaming(running: RunningGateway) -> AsyncIterator[AsyncIterator[bytes]]:
    async with (
        httpx.AsyncClient(trust_env=False, timeout=WAIT_S) as client,
        client.stream("POST", f"{running.url}/v1/responses", json=HELLO) as answer,
    ):
        yield answer.aiter_bytes()


async def test_draining_lets_a_turn_end_and_takes_no_new_one(tmp_path: Path) -> None:
    async with (
        running_model_server([stalls_after(3, text("Hello."))]) as model,
        running_gateway(gateway_for(model.url, tmp_path), SETTINGS) as running,
        streaming(running) as chunks,
    ):
        received = [await anext(chunks)]
        await running.admin.drain()
        async with httpx.AsyncClient(trust_env=False, timeout=WAIT_S) as client:
            with pytest.raises(httpx.ConnectError):
                await client.get(f"{running.url}/health")
        model.release()
        received += [chunk async for chunk in chunks]
    assert b'"type":"response.completed"' in b"".join(received)


async def test_the_compiled_listeners_are_open_and_the_loop_listener_outlives_the_drain(
    model: ModelServer, tmp_path: Path
) -> None:
    async with running_gateway(gateway_for(model.url, tmp_path), SETTINGS) as running:
        dump = await running.admin.config_dump()
        await running.admin.drain()
        [loop] = running.run_dir.glob("loop-*.sock")
        transport = httpx.AsyncHTTPTransport(uds=str(loop))
        async with httpx.AsyncClient(transport=transport, timeout=WAIT_S) as client:
            answer = await client.post("http://loop/v1/responses", json={"model": "attache-demo", "input": "Hello"})
    assert answer.status_code == 200
    [listeners] = [part for part in dump["configs"] if part["@type"].endswith("v3.ListenersConfigDump")]
    names = sorted(each["listener"]["name"] for each in listeners["static_listeners"])
    assert names == ["gateway", "loop/responses/0"]


async def test_after_the_grace_period_what_is_left_is_cut_off(tmp_path: Path) -> None:
    settings = RunSettings(grace_s=0.1, envoy_concurrency=1)
    async with running_model_server([stalls_after(3, text("Hello."))]) as model:
        gateway = gateway_for(model.url, tmp_path)
        async with httpx.AsyncClient(trust_env=False, timeout=WAIT_S) as client:
            async with running_gateway(gateway, settings) as running:
                request = client.build_request("POST", f"{running.url}/v1/responses", json=HELLO)
                answer = await client.send(request, stream=True)
                chunks = answer.aiter_bytes()
                await anext(chunks)
            with pytest.raises(httpx.TransportError):
                assert [chunk async for chunk in chunks] == []
            await answer.aclose()
        await model.wait_for_disconnect()
