"""`attache up` as an operator sees it: ready, serving, failing, stopped."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from attache_core.testing.model_script import stalls_after, text
from attache_core.testing.model_server import running_model_server
from attache_envoy.run.output import MAX_LINE_BYTES
from attache_envoy.run.readiness import wait_until_ready
from attache_envoy.run.run_dir import private_run_dir
from attache_process import Finished, assert_all_end, attache_up, run_attache

Attache = Callable[..., Finished]

HELLO = {"model": "attache-demo", "input": "Hello"}
OLD_ENVOY = "#!/bin/sh\necho 'envoy  version: abc/1.36.4/Clean/RELEASE/BoringSSL'\n"


async def answer_to_hello(url: str) -> int:
    async with httpx.AsyncClient(trust_env=False, timeout=10) as client:
        return (await client.post(f"{url}/v1/responses", json=HELLO)).status_code


@asynccontextmanager
async def streamed_hello(url: str) -> AsyncIterator[AsyncIterator[str]]:
    async with (
        httpx.AsyncClient(trust_env=False, timeout=10) as client,
        client.stream("POST", f"{url}/v1/responses", json={**HELLO, "stream": True}) as answer,
    ):
        yield answer.aiter_lines()


@pytest.mark.e2e
async def test_it_is_ready_when_the_upstream_is_and_a_signal_ends_it_with_nothing_left(tmp_path: Path) -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
    async with attache_up(tmp_path, "--upstream", f"http://127.0.0.1:{port}") as up:
        assert "The inference server answers 503 to GET /v1/models." in await up.logged("not ready")
        async with running_model_server(port=port):
            assert await answer_to_hello(await up.ready_url()) == 200
            run_dir, children = up.run_dir(), up.children()
            up.signal(signal.SIGTERM)
            assert await up.rest_of_stdout() == ""
            assert await up.exit_code() == 0
    assert len(children) == 2
    assert_all_end(children)
    assert not run_dir.exists()


@pytest.mark.e2e
async def test_a_turn_under_way_ends_before_the_gateway_does(tmp_path: Path) -> None:
    async with (
        running_model_server([stalls_after(3, text("Hello."))]) as model,
        attache_up(tmp_path, "--upstream", model.url) as up,
        streamed_hello(await up.ready_url()) as lines,
    ):
        assert await anext(lines) == "event: response.created"
        run_dir = up.run_dir()
        up.signal(signal.SIGTERM)
        await up.logged("draining")
        model.release()
        assert [line async for line in lines if line.startswith("event: ")][-1] == "event: response.completed"
        assert await up.exit_code() == 0
    assert not run_dir.exists()


@pytest.mark.e2e
async def test_a_second_signal_cuts_off_a_turn_under_way(tmp_path: Path) -> None:
    async with (
        running_model_server([stalls_after(3, text("Hello."))]) as model,
        attache_up(tmp_path, "--upstream", model.url) as up,
        streamed_hello(await up.ready_url()) as lines,
    ):
        assert await anext(lines) == "event: response.created"
        run_dir, children = up.run_dir(), up.children()
        up.signal(signal.SIGTERM)
        await up.logged("draining")
        up.signal(signal.SIGTERM)
        assert await up.exit_code() == 128 + signal.SIGTERM
        assert_all_end(children)
        await model.wait_for_disconnect()
    assert not run_dir.exists()


@pytest.mark.e2e
async def test_when_it_is_killed_no_child_is_left_and_the_next_one_clears_up(tmp_path: Path) -> None:
    async with running_model_server() as model, attache_up(tmp_path, "--upstream", model.url) as up:
        await up.ready_url()
        run_dir, children = up.run_dir(), up.children()
        up.signal(signal.SIGKILL)
        assert await up.exit_code() == -signal.SIGKILL
    assert len(children) == 2
    assert_all_end(children)
    with private_run_dir():
        assert not run_dir.exists()


@pytest.mark.e2e
async def test_a_worker_that_is_killed_is_replaced_and_a_killed_envoy_ends_it(tmp_path: Path) -> None:
    async with running_model_server() as model, attache_up(tmp_path, "--upstream", model.url) as up:
        url = await up.ready_url()
        worker = up.child("attache_envoy.run.worker")
        worker.kill()
        assert "signal SIGKILL" in await up.logged("worker died and is started again")
        await wait_until_ready(url)
        assert await answer_to_hello(url) == 200
        assert up.child("attache_envoy.run.worker").pid != worker.pid

        run_dir, children = up.run_dir(), up.children()
        up.child("envoy.json").kill()
        assert (await up.rest_of_log()).splitlines()[-1] == (
            "Envoy ended with signal SIGKILL. What it logged before says why."
        )
        assert await up.exit_code() == 1
    assert_all_end(children)
    assert not run_dir.exists()


@pytest.mark.e2e
async def test_a_signal_before_it_is_ready_ends_it_with_nothing_left(tmp_path: Path) -> None:
    async with attache_up(tmp_path, "--upstream", "http://127.0.0.1:9") as up:
        await up.logged("not ready")
        run_dir, children = up.run_dir(), up.children()
        up.signal(signal.SIGTERM)
        assert await up.rest_of_stdout() == ""
        assert await up.exit_code() == 0
    assert_all_end(children)
    assert not run_dir.exists()


def test_a_port_in_use_is_told_before_anything_starts(attache: Attache) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        done = attache("up", "--upstream", "http://127.0.0.1:9", "--listen", listen)
    assert (done.exit_code, done.stdout, done.stderr) == (
        2,
        "",
        f"Cannot listen on {listen}: Address already in use. Choose another `listen` (--listen HOST:PORT).\n",
    )


@pytest.mark.e2e
def test_a_configuration_that_envoy_refuses_ends_it_without_being_printed(attache: Attache, tmp_path: Path) -> None:
    lua = {"name": "lua", "typed_config": {"@type": "type.googleapis.com/no.such.Filter"}}
    chain = [{"envoy": lua}, {"filter": "validate"}, {"filter": "upstream_round"}]
    gateway = {"upstream": "http://127.0.0.1:9", "listen": "127.0.0.1:0", "chains": {"responses": chain}}
    (tmp_path / "gateway.yaml").write_text(json.dumps(gateway))
    done = attache("up", "--workers", "1")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "no.such.Filter" in done.stderr
    assert len(done.stderr) < 3 * MAX_LINE_BYTES
    assert done.stderr.endswith("\nEnvoy ended with exit code 1. What it logged before says why.\n")


def test_an_envoy_that_is_too_old_is_refused_with_the_reason(
    attache: Attache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    envoy = tmp_path / "old-envoy"
    envoy.write_text(OLD_ENVOY)
    envoy.chmod(0o755)
    monkeypatch.setenv("ENVOY", str(envoy))
    done = attache("up", "--upstream", "http://127.0.0.1:9", "--listen", "127.0.0.1:0")
    assert (done.exit_code, done.stdout, done.stderr) == (
        2,
        "",
        (
            "Envoy 1.36.4 is too old: placement fused needs 1.37 or later, because older ones cannot start a response"
            " before the inference server is asked. Use a newer one.\n"
        ),
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["up"], "There is no gateway file: name one, write ./gateway.yaml, or say where the inference server is"),
        (["up", "missing.yaml"], "missing.yaml: the gateway file cannot be read: No such file or directory."),
        (["up", "--demo", "--upstream", "http://127.0.0.1:9"], "--demo brings its own upstream: leave out --upstream."),
        (["up", "--upstream", "ftp://host"], "--upstream: 'ftp://host' is not a base URL"),
        (["up", "--workers", "0", "--upstream", "http://127.0.0.1:9"], "--workers"),
    ],
)
def test_what_the_operator_got_wrong_is_told_without_a_traceback(
    attache: Attache, arguments: list[str], message: str
) -> None:
    done = attache(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_bad_log_level_is_refused(tmp_path: Path) -> None:
    done = run_attache(tmp_path, "up", "--upstream", "http://127.0.0.1:9", ATTACHE_LOG="loud")
    assert (done.exit_code, done.stderr) == (2, "ATTACHE_LOG must be one of debug, info, warning, error.\n")


@pytest.mark.e2e
async def test_the_demo_brings_its_servers_and_says_how_to_talk_to_it(tmp_path: Path) -> None:
    async with attache_up(tmp_path, "--demo") as up:
        url = await up.ready_url()
        assert await up.logged(f"curl {url}/v1/responses")
        assert await answer_to_hello(url) == 200
        children = up.children()
        up.child("attache_core.testing.mcp_server").kill()
        assert (await up.rest_of_log()).splitlines()[-1] == (
            "The demo's server attache_core.testing.mcp_server ended with signal SIGKILL."
        )
        assert await up.exit_code() == 1
    assert len(children) == 4
    assert_all_end(children)
