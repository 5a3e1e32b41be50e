"""Clients, models, workers and tool servers that go away in the middle."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import httpx
import psutil

from attache_core.events.event import Event
from attache_core.json_codec import Json
from attache_core.testing.model_script import (
    call,
    dies_after,
    ends_without_terminal,
    function_calls,
    stalls_after,
    text,
)
from attache_core.testing.model_server import running_model_server
from attache_envoy.gateway import default_gateway, with_options
from attache_envoy.run.settings import RunSettings
from attache_envoy.run.supervisor import running_gateway
from core.events.canonical_stream import check_stream
from e2e.stage import WAIT_S, Stage, decode_events, open_stage
from e2e.test_workers import streams_of_workers


async def leave_when(stage: Stage, body: dict[str, object], leave: asyncio.Event) -> None:
    """A client that hangs up once `leave` is set."""
    async with httpx.AsyncClient(base_url=stage.gateway.url, timeout=None) as client, asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(client.post("/v1/responses", json={"model": "m", **body}))
        await leave.wait()
        asking.cancel()


async def test_client_that_leaves_while_the_model_streams_ends_the_upstream_request(stage: Stage, stream: bool) -> None:
    stage.model.play(stalls_after(3, text("one two three four five six")))
    server = stage.model.server
    assert server is not None
    left, before = server.cancelled, stage.stored_turns()
    leave = asyncio.Event()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(leave_when(stage, {"input": "Hi", "stream": stream}, leave))
        await stage.model.wait_until_asked()
        leave.set()

    await server.wait_for_disconnect(left + 1, timeout_s=1)
    await stage.wait_until_idle(timeout_s=1)
    assert stage.stored_turns() == before


async def test_client_that_leaves_while_a_tool_runs_ends_the_call(stage: Stage, stream: bool) -> None:
    stage.model.play(function_calls(call("hang", {})))
    calls, cancelled = len(stage.mcp.calls), len(stage.mcp.cancelled)
    before = stage.stored_turns()
    leave = asyncio.Event()

    async with asyncio.TaskGroup() as tasks:
        body = {"input": "Hang", "stream": stream, "tools": [stage.mcp_tool()]}
        tasks.create_task(leave_when(stage, body, leave))
        await stage.mcp.until(lambda server: len(server.calls) > calls)
        leave.set()

    async with asyncio.timeout(1):
        await stage.mcp.until(lambda server: len(server.cancelled) > cancelled)
    await stage.wait_until_idle(timeout_s=1)
    assert stage.stored_turns() == before


async def test_model_that_dies_midstream_is_a_failed_response_that_cannot_be_continued(stage: Stage) -> None:
    stage.model.play(stalls_after(5, text("This will never be said whole.")))
    body = {"model": "m", "input": "Hi", "stream": True}

    async with stage.client.stream("POST", "/v1/responses", json=body) as response, asyncio.timeout(WAIT_S):
        chunks = response.aiter_bytes()
        received = await anext(chunks)
        assert stage.model.server is not None
        await stage.model.server.disconnect_all()
        received += b"".join([chunk async for chunk in chunks])

    await check_failed(stage, decode_events(received))


async def test_stream_that_just_ends_is_a_failed_response_that_cannot_be_continued(stage: Stage) -> None:
    stage.model.play(ends_without_terminal(text("Nobody says that this is all.")))

    answer = await stage.ask(input="Hi", stream=True)

    await check_failed(stage, answer.events)


async def check_failed(stage: Stage, events: list[Json]) -> None:
    check_stream([Event(event["type"], event) for event in events])
    failed = events[-1]["response"]
    assert (events[-1]["type"], failed["status"]) == ("response.failed", "failed")
    assert failed["error"]["code"]
    assert (await stage.get(f"/v1/responses/{failed['id']}")).json() == failed
    refused = await stage.ask(input="Go on", previous_response_id=failed["id"])
    assert (refused.status, refused.body["error"]["param"]) == (400, "previous_response_id")
    assert len(stage.model.asked) == 1


async def test_model_that_dies_before_it_answers_is_a_real_error(stage: Stage, stream: bool) -> None:
    stage.model.play(dies_after(0))
    before = stage.stored_turns()

    answer = await stage.ask(input="Hi", stream=stream)

    assert answer.status in (502, 503)
    assert answer.body["error"]["type"] == "server_error"
    assert stage.stored_turns() == before


async def test_streaming_client_gets_response_created_before_a_tool_server_is_asked(stage: Stage) -> None:
    asked = asyncio.Event()
    answered = asyncio.Event()

    async def slow_server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await answered.wait()
        writer.close()

    listener = await asyncio.start_server(slow_server, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/mcp"
    stage.model.play(text("Without tools, then."))
    body = {"model": "m", "input": "Hi", "stream": True, "tools": [stage.mcp_tool("slow", server_url=url)]}
    async with listener, stage.client.stream("POST", "/v1/responses", json=body) as response, asyncio.timeout(WAIT_S):
        lines = response.aiter_lines()
        assert await anext(lines) == "event: response.created"
        await asked.wait()
        answered.set()
        rest = [line async for line in lines]
    assert "event: response.mcp_list_tools.failed" in rest
    assert "event: response.completed" in rest


async def test_unreachable_tool_server_is_an_item_with_an_error_and_the_turn_goes_on(
    stage: Stage, stream: bool
) -> None:
    stage.model.play(text("Without tools, then."))
    gone = stage.mcp_tool("gone", server_url="http://127.0.0.1:1/mcp")

    answer = await stage.ask(input="Hi", tools=[gone], stream=stream)

    assert answer.item_types == ["mcp_list_tools", "message"]
    assert answer.body["output"][0]["error"]
    assert answer.body["status"] == "completed"


async def test_tool_that_fails_is_told_to_the_model_and_the_turn_goes_on(stage: Stage, stream: bool) -> None:
    stage.model.play(function_calls(call("fail", {"message": "out of paper"})), text("It failed."))

    answer = await stage.ask(input="Print", tools=[stage.mcp_tool()], stream=stream)

    failed = answer.body["output"][1]
    assert (failed["type"], failed["status"], answer.body["status"]) == ("mcp_call", "failed", "completed")
    assert "out of paper" in str(failed["error"])
    assert "out of paper" in stage.model.asked[1]["input"][2]["output"]


async def test_killed_worker_fails_its_turn_and_one_more_at_most(placement: str, tmp_path: Path) -> None:
    async with open_stage(placement, tmp_path, workers=2) as stage:
        stage.model.set(lambda asked: stalls_after(2, text("no")) if "stall" in str(asked.body) else text("Fine."))
        async with asyncio.TaskGroup() as tasks:
            broken = tasks.create_task(outcome(stage, "stall"))
            await stage.model.wait_until_asked()
            os.kill(await a_worker_of_the_turn(stage), signal.SIGKILL)

        assert broken.result() != "response.completed"
        # Envoy's threads learn of the death one after the other: a turn of the same moment may still be sent there.
        next_two = [await stage.ask(input="Hi") for _ in range(2)]
        assert [answer.status for answer in next_two] in ([200, 200], [503, 200])
        assert next_two[1].text == "Fine."


async def a_worker_of_the_turn(stage: Stage) -> int:
    """A process that holds a stream of the only turn there is."""
    return stage.gateway.workers.pids[next(i for i, count in enumerate(await streams_of_workers(stage)) if count > 0)]


async def outcome(stage: Stage, said: str) -> object:
    try:
        response = await stage.client.post("/v1/responses", json={"model": "m", "input": said, "stream": True})
    except httpx.TransportError as error:
        return error
    return response.text.rpartition("event: ")[2].partition("\n")[0] if response.status_code == 200 else response


async def test_without_processors_the_client_gets_5xx_and_the_upstream_sees_nothing(
    placement: str, stream: bool, tmp_path: Path
) -> None:
    unrestarted = RunSettings(first_backoff_s=60.0, max_backoff_s=60.0, grace_s=1.0)
    async with open_stage(placement, tmp_path, run=unrestarted) as stage:
        for pid in stage.gateway.workers.pids:
            os.kill(pid, signal.SIGKILL)
            await gone(pid)

        answer = await stage.ask(input="Hi", stream=stream)

        assert answer.status >= 500
        assert answer.body["error"]["type"] == "server_error"
        assert stage.model.asked == []


async def gone(pid: int) -> None:
    """Wait until a killed process has been reaped."""
    async with asyncio.timeout(WAIT_S):
        while psutil.pid_exists(pid):  # noqa: ASYNC110 - the process is another's child: nobody tells us
            await asyncio.sleep(0.01)


async def test_gateway_in_front_of_an_upstream_that_is_down_answers_in_the_apis_shape(
    placement: str, stream: bool, tmp_path: Path
) -> None:
    async with running_model_server() as server:
        url = server.url
    settings = with_options(
        default_gateway(url), listen="127.0.0.1:0", placement=placement, storage=f"sqlite:///{tmp_path}/a.db"
    )
    async with (
        running_gateway(settings, until="listening") as gateway,
        httpx.AsyncClient(base_url=gateway.url) as client,
    ):
        async with asyncio.timeout(4 * WAIT_S):
            while (await gateway.admin.healthy_workers())[0] == 0:  # noqa: ASYNC110 - Envoy is only ever asked
                await asyncio.sleep(0.05)
        answer = await client.post("/v1/responses", json={"model": "m", "input": "Hi", "stream": stream})
        ready = await client.get("/ready")

    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "upstream_unavailable")
    assert (ready.status_code, ready.json()["error"]["type"]) == (503, "server_error")
