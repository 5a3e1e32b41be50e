"""MCP servers through the whole gateway: named in its file or brought by a request, over both transports."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from attache_core.json_codec import Json, encode
from attache_core.testing.mcp_server import Fault, RunningMcpServer, running_mcp_server
from attache_core.testing.model_script import call, function_calls, text
from attache_core.tools.call_errors import execution_error, http_error, protocol_error
from core.tools.mcp.relay import relay_to
from e2e.stage import WAIT_S, Stage, answered, check, open_stage

WEATHER: Json = {"type": "mcp", "server_label": "weather", "require_approval": "never"}
ARCHIVE: Json = {**WEATHER, "server_label": "archive"}
CANARY = "canary-e83b17c0"


@dataclass(frozen=True)
class Named:
    """A gateway whose file names two servers: `weather`, and `archive` over HTTP with SSE."""

    stage: Stage
    weather: RunningMcpServer
    archive: RunningMcpServer


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_named(placement: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Named]:
    async with running_mcp_server(token="w-token") as weather, running_mcp_server(transport="sse") as archive:
        section = f"""
mcp:
  allow_request_servers: false
  allow_private_addresses: false
  servers:
    weather: {{url: '{weather.url}', authorization: w-token, allowed_tools: [add, report], description: Numbers.}}
    archive: {{url: '{archive.url}', headers: {{x-team: blue}}, allowed_tools: [echo, report]}}
"""
        folder = tmp_path_factory.mktemp(f"named-{placement}")
        async with open_stage(placement, folder, gateway_yaml=section) as stage:
            yield Named(stage, weather, archive)


@pytest.fixture
def named(shared_named: Named) -> Named:
    shared_named.stage.model.play()
    return shared_named


async def test_named_servers_are_listed_and_called_by_their_labels_over_either_transport(
    named: Named, stream: bool
) -> None:
    stage = named.stage
    calls = function_calls(call("add", {"a": 1, "b": 2}), call("echo", {"text": "hi"}))
    stage.model.play(calls, text("Done."), text("As I said."))

    answer = check(await stage.ask(input="Hi", tools=[WEATHER, ARCHIVE], stream=stream))

    assert answer.item_types == ["mcp_list_tools", "mcp_list_tools", "mcp_call", "mcp_call", "message"]
    called = [(item["server_label"], item["output"]) for item in answer.body["output"] if item["type"] == "mcp_call"]
    assert called == [("weather", '{"sum":3}'), ("archive", "hi")]
    assert [tool["server_url"] for tool in answer.body["tools"]] == [None, None]
    told = {tool["name"]: tool["description"] for tool in stage.model.asked[0]["tools"]}
    assert told["add"] == "weather: Numbers.\n\nThe sum of two numbers."
    assert {seen.headers["authorization"] for seen in named.weather.requests} == {"Bearer w-token"}
    assert {seen.headers["x-team"] for seen in named.archive.requests} == {"blue"}

    more = check(
        await stage.ask(input="So?", previous_response_id=answer.body["id"], tools=[WEATHER, ARCHIVE], stream=stream)
    )
    assert more.item_types == ["message"]
    listings = named.weather.counts["tools/list"], named.archive.counts["tools/list"]
    assert listings == (1, 1), "one worker asks each of them once, whatever the number of turns"


@pytest.mark.parametrize(
    ("tool", "code", "param"),
    [
        ({**WEATHER, "server_url": "http://127.0.0.1:1/"}, "unsupported_parameter", "tools[0].server_url"),
        ({**WEATHER, "authorization": "mine"}, "unsupported_parameter", "tools[0].authorization"),
        ({**WEATHER, "headers": {"x-team": "red"}}, "unsupported_parameter", "tools[0].headers"),
        ({**WEATHER, "server_label": "theirs"}, "invalid_value", "tools[0].server_label"),
        (
            {**WEATHER, "server_label": "theirs", "server_url": "http://127.0.0.1:1/"},
            "invalid_value",
            "tools[0].server_label",
        ),
    ],
)
async def test_request_that_may_not_use_a_server_so_is_400(
    named: Named, stream: bool, tool: Json, code: str, param: str
) -> None:
    answer = await named.stage.ask(input="Hi", tools=[tool], stream=stream)
    assert (answer.status, answer.body["error"]["code"], answer.body["error"]["param"]) == (400, code, param)
    assert named.stage.model.asked == []


@pytest.mark.parametrize("tool", [WEATHER, ARCHIVE], ids=["streamable_http", "sse"])
async def test_progress_of_a_call_reaches_a_streaming_client_before_its_result(named: Named, tool: Json) -> None:
    """The call ends only when the client has been told of its progress."""
    server = named.weather if tool is WEATHER else named.archive
    server.release.clear()
    named.stage.model.play(function_calls(call("report", {})), text("Done."))
    body, told = {"model": "attache-demo", "input": "Hi", "tools": [tool], "stream": True}, b""
    async with asyncio.timeout(WAIT_S), named.stage.client.stream("POST", "/v1/responses", json=body) as response:
        async for piece in response.aiter_bytes():
            told += piece
            if told.count(b"event: response.mcp_call.in_progress\n") == 2:
                server.release.set()
    answer = check(answered(httpx.Response(response.status_code, headers=response.headers, content=told)))
    assert answer.body["output"][-2]["output"] == "released"
    life = [kind for kind in answer.types if kind.startswith("response.mcp_call.")]
    assert life == ["response.mcp_call.in_progress"] * (len(life) - 1) + ["response.mcp_call.completed"]


BROKEN = protocol_error(-32050, "Out of order.")
CLOSED = protocol_error(-32000, "The MCP server closed the connection before it answered.")
FAULTS = {
    "JSON-RPC error": (Fault(error={"code": -32050, "message": "Out of order."}), BROKEN),
    "HTTP error": (Fault(status=500), http_error(500, "The MCP server answered with HTTP status 500.")),
    "dies midway": (Fault(body=b'{"jsonrpc"', cut_off=True), CLOSED),
}
transports = pytest.mark.parametrize("transport", ["streamable_http", "sse"])
faults = pytest.mark.parametrize(("fault", "error"), FAULTS.values(), ids=FAULTS)


@transports
@faults
async def test_server_that_fails_to_list_is_an_item_with_an_error_and_the_model_answers(
    stage: Stage, stream: bool, transport: str, fault: Fault, error: Json
) -> None:
    stage.model.play(text("Without it, then."))
    async with running_mcp_server(transport=transport, faults={"tools/list": fault}) as server:
        answer = check(await stage.ask(input="Hi", tools=[stage.mcp_tool(server_url=server.url)], stream=stream))
    assert answer.item_types == ["mcp_list_tools", "message"]
    assert (answer.body["status"], answer.body["output"][0]["error"]) == ("completed", error["message"])


@transports
@faults
async def test_call_that_fails_is_sent_once_and_is_an_item_with_an_error_that_the_model_is_told(
    stage: Stage, stream: bool, transport: str, fault: Fault, error: Json
) -> None:
    stage.model.play(function_calls(call("echo", {"text": "x"})), text("It failed."))
    async with running_mcp_server(transport=transport, faults={"tools/call": fault}) as server:
        answer = check(await stage.ask(input="Hi", tools=[stage.mcp_tool(server_url=server.url)], stream=stream))
        sent = server.calls
    called = answer.body["output"][1]
    assert (called["status"], called["output"], called["error"]) == ("failed", None, error)
    assert (answer.body["status"], sent) == ("completed", [("echo", {"text": "x"})])
    assert stage.model.asked[1]["input"][-1]["output"] == f"The tool call failed: {error['message']}"


@transports
async def test_failure_that_a_tool_reports_and_a_server_that_refuses_connections_are_told_to_the_model(
    stage: Stage, stream: bool, transport: str
) -> None:
    stage.model.play(function_calls(call("fail", {"message": "no tea"})), text("It failed."), text("It is gone."))
    async with running_mcp_server(transport=transport) as server, relay_to(server.url) as relay:
        tool = stage.mcp_tool(server_url=relay.url)
        failed = check(await stage.ask(input="Hi", tools=[tool], stream=stream))
        await relay.refuse()
        fresh = {**tool, "headers": {"x-other": "session"}}
        gone = check(await stage.ask(input="Hi", tools=[fresh], stream=stream))
    block = {"type": "text", "text": "no tea", "annotations": None, "meta": None}
    assert failed.body["output"][1]["error"] == execution_error([block])
    assert gone.body["output"][0]["error"] == "The MCP server cannot be reached."


Outcome = Callable[[str, str], dict[str, Fault]]
OUTCOMES: tuple[Outcome, ...] = (
    lambda *_: {},
    lambda told, _: calls_with(Fault(result={"content": [{"type": "text", "text": told}]})),
    lambda told, _: calls_with(Fault(result={"content": [{"type": "text", "text": told}], "isError": True})),
    lambda told, _: calls_with(Fault(error={"code": -5, "message": told})),
    lambda told, _: calls_with(Fault(status=500, body=told.encode())),
    lambda _, elsewhere: calls_with(Fault(status=307, body=f"{elsewhere}?{CANARY}".encode())),
    lambda *_: calls_with(Fault(hang=True)),
)
"""What becomes of calls, by what a server knows of who asks, and where it might send them."""


def calls_with(fault: Fault) -> dict[str, Fault]:
    return {"tools/call": fault}


async def test_credentials_are_shown_to_their_server_alone_whatever_becomes_of_a_call(
    placement: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given by a client and by the operator; the server succeeds, repeats them, fails, redirects, and hangs."""
    monkeypatch.setenv("ATTACHE_LOG", "debug")
    shown: list[object] = []
    async with (
        running_mcp_server(token=f"{CANARY}-a", transport="sse") as ours,
        running_mcp_server(token=f"{CANARY}-b") as theirs,
        running_mcp_server() as elsewhere,
    ):
        chain = "{filter: validate}, {filter: persist}, {filter: rehydrate}"
        loop = "{filter: tool_dispatch, call_timeout_s: 1, loop: [{filter: upstream_round}]}"
        section = (
            f"chains: {{responses: [{chain}, {loop}]}}\n"
            f"mcp: {{servers: {{ours: {{url: '{ours.url}?key={CANARY}-c', authorization: {CANARY}-a}}}}}}\n"
        )
        async with open_stage(placement, tmp_path, gateway_yaml=section) as stage:
            tool = stage.mcp_tool(
                "theirs",
                server_url=f"{theirs.url}?key={CANARY}-d",
                authorization=f"{CANARY}-b",
                headers={"x-key": f"{CANARY}-e"},
                allowed_tools=["add"],
            )
            tools = [{**WEATHER, "server_label": "ours", "allowed_tools": ["echo"]}, tool]
            told = {ours: f"asked with {CANARY}-a", theirs: f"asked with {CANARY}-b and {CANARY}-e"}
            for outcome in OUTCOMES:
                for server, known in told.items():
                    server.faults = outcome(known, elsewhere.url)
                for stream in (False, True):
                    calls = function_calls(call("echo", {"text": "x"}), call("add", {"a": 1, "b": 2}))
                    stage.model.play(calls, text("Done."), text("As I said."))
                    answer = check(await stage.ask(input="Hi", tools=tools, stream=stream))
                    more = check(await stage.ask(input="So?", previous_response_id=answer.body["id"], stream=stream))
                    got = await stage.get(f"/v1/responses/{answer.body['id']}")
                    shown += [answer.body, answer.events, more.body, got.text, stage.model.asked]
            refused = await stage.ask(input="Hi", tools=[{**tools[0], "authorization": f"{CANARY}-f"}])
            shown += [refused.body, await stage.gateway.admin.config_dump(), repr(stage.settings)]
            shown.append(stage.settings.model_dump_json())
            stored = b"".join(file.read_bytes() for file in tmp_path.glob("attache.db*"))  # noqa: ASYNC240 - a test may wait
    log = capfd.readouterr()
    assert (len(ours.calls), len(theirs.calls), elsewhere.requests) == (14, 14, [])
    assert refused.status == 400
    assert stored
    assert log.err
    unshared = [encode(each) if not isinstance(each, str) else each.encode() for each in shown]
    assert [text for text in (*unshared, stored, log.out.encode(), log.err.encode()) if CANARY.encode() in text] == []
