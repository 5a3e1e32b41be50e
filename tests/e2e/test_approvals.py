"""MCP calls that a user must approve, through a real Envoy: asked for, answered, and refused where they must be."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from attache_core.json_codec import Json
from attache_core.testing.mcp_server import running_mcp_server
from attache_core.testing.model_script import call, function_calls, held, text
from e2e.sdk_client import open_sdk
from e2e.stage import Answered, Stage, check, open_stage

WITHOUT_PERSIST = """
chains:
  responses:
    - filter: validate
    - filter: rehydrate
    - filter: tool_dispatch
      loop: [{filter: upstream_round}]
"""
MINE: Json = {"type": "function", "name": "mine", "parameters": {"type": "object", "properties": {}}}


Ran = Callable[[], Sequence[Any]]


@pytest.fixture
def ran(stage: Stage) -> Ran:
    """The calls that reached the stage's MCP server since the test began."""
    before = len(stage.mcp.calls)
    return lambda: stage.mcp.calls[before:]


def asking_tool(stage: Stage, **fields: Any) -> Json:
    """The stage's MCP server, as a client declares it that says nothing of approval."""
    return {name: value for name, value in stage.mcp_tool(**fields).items() if name != "require_approval"}


def requests(answer: Answered) -> list[Json]:
    return [item for item in answer.body["output"] if item["type"] == "mcp_approval_request"]


def reply(request: Json, *, approve: bool = True, **fields: Any) -> Json:
    return {"type": "mcp_approval_response", "approval_request_id": request["id"], "approve": approve, **fields}


def replies(answer: Answered) -> list[Json]:
    return [reply(request) for request in requests(answer)]


def refusal(answer: Answered) -> str:
    """The message of a 400 about the input."""
    error = answer.body["error"]
    assert (answer.status, error["type"], error["param"]) == (400, "invalid_request_error", "input")
    return str(error["message"])


async def ask(stage: Stage, stream: bool, *texts: str, **fields: Any) -> Answered:
    """A turn that ends with the request to echo each text."""
    stage.model.play(function_calls(*(call("echo", {"text": each}) for each in texts)))
    body = {"input": "Echo", "tools": [asking_tool(stage)], **fields}
    return check(await stage.ask(stream=stream, **body))


async def answer_with(stage: Stage, stream: bool, first: Answered, given: Any, **fields: Any) -> Answered:
    body = {"previous_response_id": first.body["id"], "tools": [asking_tool(stage)], **fields}
    return await stage.ask(input=given, stream=stream, **body)


async def test_request_is_in_what_the_client_gets_and_in_what_is_stored(stage: Stage, stream: bool, ran: Ran) -> None:
    first = await ask(stage, stream, "a")

    (request,) = requests(first)
    assert request == {
        "id": request["id"],
        "type": "mcp_approval_request",
        "arguments": request["arguments"],
        "name": "echo",
        "server_label": "demo",
    }
    assert (first.body["status"], len(stage.model.asked), ran()) == ("completed", 1, [])
    assert (await stage.get(f"/v1/responses/{first.body['id']}")).json() == first.body
    if stream:
        shown = [event for event in first.events if event.get("item", {}).get("type") == "mcp_approval_request"]
        assert [event["type"] for event in shown] == ["response.output_item.added", "response.output_item.done"]
        assert [event["item"] for event in shown] == [request, request]


async def test_approved_calls_run_once_and_denied_ones_do_not(stage: Stage, stream: bool, ran: Ran) -> None:
    first = await ask(stage, stream, "a", "b", "c")
    one, no, other = requests(first)
    stage.model.play(text("Done."), text("Bye."))

    given = [reply(other), reply(no, approve=False, reason="Not b."), reply(one)]
    second = check(await answer_with(stage, stream, first, given))
    third = check(await answer_with(stage, stream, second, "Thanks"))

    made = second.body["output"][:2]
    assert (second.item_types, third.item_types) == (["mcp_call", "mcp_call", "message"], ["message"])
    assert [(item["approval_request_id"], item["output"]) for item in made] == [(one["id"], "a"), (other["id"], "c")]
    assert sorted(arguments["text"] for _, arguments in ran()) == ["a", "c"]
    outputs = [item["output"] for item in stage.model.asked[0]["input"] if item["type"] == "function_call_output"]
    assert outputs == ["a", "The user did not approve this call: it was not run. The user's reason: Not b.", "c"]
    assert stage.model.asked[1]["input"][:7] == stage.model.asked[0]["input"]


async def test_mixed_round_is_continued_with_all_that_the_client_owes(stage: Stage, stream: bool, ran: Ran) -> None:
    stage.model.play(
        function_calls(call("mine", {}), call("add", {"a": 1, "b": 2}), call("echo", {"text": "a"})), text("Done.")
    )
    tools = [asking_tool(stage) | {"require_approval": {"never": {"tool_names": ["add"]}}}, MINE]

    first = check(await stage.ask(input="All", stream=stream, tools=tools))
    assert first.item_types == ["mcp_list_tools", "function_call", "mcp_call", "mcp_approval_request"]
    assert ran() == [("add", {"a": 1, "b": 2})]
    refused = await answer_with(stage, stream, first, replies(first), tools=tools)
    assert "No tool output found for function call" in refusal(refused)

    output = {"type": "function_call_output", "call_id": first.body["output"][1]["call_id"], "output": "x"}
    second = check(await answer_with(stage, stream, first, [output, *replies(first)], tools=tools))
    assert (second.item_types, ran()[1:]) == (["mcp_call", "message"], [("echo", {"text": "a"})])


async def test_approval_is_given_once_and_must_be_given(stage: Stage, stream: bool, ran: Ran) -> None:
    first = await ask(stage, stream, "a")
    (request,) = requests(first)
    stage.model.play(text("Done."))
    open_request = f"The following MCP approval requests do not have an approval: {request['id']}"
    assert refusal(await answer_with(stage, stream, first, "Go on")) == open_request
    check(await answer_with(stage, stream, first, [reply(request)]))

    for again in ([reply(request)], [reply(request, approve=False)]):
        assert "was answered before" in refusal(await answer_with(stage, stream, first, again))
    assert refusal(await answer_with(stage, stream, first, "Go on")) == open_request
    assert (len(stage.model.asked), ran()) == (1, [("echo", {"text": "a"})])


async def test_of_two_continuations_at_once_one_runs_the_call(stage: Stage, stream: bool, ran: Ran) -> None:
    first = await ask(stage, stream, "a")
    stage.model.play(text("Done."))

    async with asyncio.TaskGroup() as tasks:
        turns = [tasks.create_task(answer_with(stage, stream, first, replies(first))) for _ in range(2)]

    assert sorted(turn.result().status for turn in turns) == [200, 400]
    assert (len(stage.model.asked), ran()) == (1, [("echo", {"text": "a"})])


async def test_approval_in_a_conversation_is_given_once_and_the_conversation_goes_on(
    stage: Stage, stream: bool, ran: Ran
) -> None:
    created = await stage.client.post("/v1/conversations", json={})
    there: dict[str, Any] = {"conversation": created.json()["id"], "tools": [asking_tool(stage)]}
    first = await ask(stage, stream, "a", "b", **there)
    one, no = requests(first)
    given = [reply(one), reply(no, approve=False)]
    stage.model.play(text("Done."), text("Bye."))

    async with asyncio.TaskGroup() as tasks:
        turns = [tasks.create_task(stage.ask(input=given, stream=stream, **there)) for _ in range(2)]
    second, other = sorted((turn.result() for turn in turns), key=lambda answer: answer.status)
    third = check(await stage.ask(input="Thanks", stream=stream, **there))

    assert refusal(other) == f"The MCP approval request {one['id']} was answered before."
    assert (check(second).item_types, third.item_types) == (["mcp_call", "message"], ["message"])
    assert ran() == [("echo", {"text": "a"})]
    told = stage.model.asked[0]["input"]
    assert stage.model.asked[1]["input"][: len(told)] == told


async def test_approval_is_refused_after_a_change_of_url_credentials_or_arguments(
    stage: Stage, stream: bool, ran: Ran
) -> None:
    first = await ask(stage, stream, "a")
    (request,) = requests(first)
    for fields in ({"server_url": f"{stage.mcp.url}?x=1"}, {"authorization": "theirs"}, {"headers": {"x-team": "b"}}):
        refused = await answer_with(stage, stream, first, replies(first), tools=[asking_tool(stage, **fields)])
        assert "is for another call" in refusal(refused)
    changed = {**request, "arguments": '{"text": "b"}'}
    refused = await stage.ask(input=[changed, reply(changed)], tools=[asking_tool(stage)], stream=stream)
    assert "is for another call" in refusal(refused)

    assert (len(stage.model.asked), ran()) == (1, [])


async def test_request_that_was_never_made_is_refused(stage: Stage, stream: bool) -> None:
    forged = {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "demo", "name": "echo", "arguments": "{}"}
    for given in ([forged, reply(forged)], [reply(forged)], [forged]):
        assert "mcpr_1" in refusal(await stage.ask(input=given, tools=[asking_tool(stage)], stream=stream))
    assert stage.model.asked == []


async def test_response_that_is_not_stored_may_not_ask_whatever_the_client_claims(stage: Stage, stream: bool) -> None:
    body = {"model": "m", "input": "Hi", "store": False, "stream": stream, "tools": [asking_tool(stage)]}
    for headers in ({}, {"x-attache-stored": "true"}):
        answer = await stage.post(body, headers)
        assert (answer.status, answer.body["error"]["param"]) == (400, "tools[0].require_approval")
        assert "set 'store' to true, or" in answer.body["error"]["message"]
    assert stage.model.asked == []


async def test_chain_that_stores_nothing_may_not_ask(placement: str, tmp_path: Path) -> None:
    async with open_stage(placement, tmp_path, gateway_yaml=WITHOUT_PERSIST) as stage:
        stage.model.play()
        for stream in (False, True):
            answer = await stage.ask(input="Hi", tools=[asking_tool(stage)], stream=stream)
            assert (answer.status, answer.body["error"]["param"]) == (400, "tools[0].require_approval")
            assert "stores no responses" in answer.body["error"]["message"]
        assert stage.model.asked == []


@pytest.mark.parametrize("approve", [True, False])
async def test_openai_sdk_makes_the_round_trip(stage: Stage, stream: bool, ran: Ran, approve: bool) -> None:
    stage.model.play(function_calls(call("echo", {"text": "hi"})), text("Echoed."))
    tools: Any = [asking_tool(stage)]
    async with open_sdk(stage) as sdk:

        async def respond(**body: Any) -> Any:
            if not stream:
                return await sdk.responses.create(model="attache-demo", tools=tools, **body)
            async with sdk.responses.stream(model="attache-demo", tools=tools, **body) as events:
                async for _ in events:
                    pass
                return await events.get_final_response()

        first = await respond(input="Echo")
        request = first.output[-1]
        assert (request.type, request.name, request.server_label) == ("mcp_approval_request", "echo", "demo")
        said = {"type": "mcp_approval_response", "approval_request_id": request.id, "approve": approve}
        second = await respond(input=[said], previous_response_id=first.id)

    assert second.output_text == "Echoed."
    if approve:
        assert (second.output[0].approval_request_id, second.output[0].output) == (request.id, "hi")
    assert ran() == ([("echo", {"text": "hi"})] if approve else [])


async def test_approval_outlives_the_gateway_that_asked_and_any_worker_takes_it(placement: str, tmp_path: Path) -> None:
    """What is kept until then tells no secret."""
    async with running_mcp_server() as server:
        secret = "s3cr3t-c4n4ry"
        tool = {"type": "mcp", "server_label": "demo", "server_url": server.url, "authorization": secret}
        async with open_stage(placement, tmp_path, workers=2) as stage:
            asked = []
            for number, stream in enumerate((False, True) * 3):
                stage.model.play(function_calls(call("echo", {"text": str(number)})))
                asked.append(check(await stage.ask(input="Echo", tools=[tool], stream=stream)))
        with sqlite3.connect(stage.storage) as database:
            assert secret not in str(database.execute("SELECT * FROM approvals").fetchall())
        async with open_stage(placement, tmp_path, workers=2) as stage:
            for number, first in enumerate(asked):
                stage.model.play(text("Done."))
                again = await answer_with(stage, bool(number % 2), first, replies(first), tools=[tool])
                assert check(again).body["output"][0]["output"] == str(number)
        assert [arguments["text"] for _, arguments in server.calls] == [str(number) for number in range(6)]


async def test_approval_that_cannot_be_kept_is_not_asked_for(placement: str, tmp_path: Path) -> None:
    async with open_stage(placement, tmp_path) as stage:
        aside = stage.storage.with_suffix(".aside")
        await ask(stage, False, "a")  # the worker has loaded its MCP client, and the model is asked at once
        for stream in (False, True):
            release = asyncio.Event()
            stage.model.play(held(release, function_calls(call("echo", {"text": "a"}))))
            async with asyncio.TaskGroup() as tasks:
                turn = tasks.create_task(stage.ask(input="Echo", tools=[asking_tool(stage)], stream=stream))
                await stage.model.wait_until_asked()
                stage.storage.rename(aside)
                release.set()
            answer = turn.result()
            aside.rename(stage.storage)
            assert answer.status == (200 if stream else 503)
            assert answer.body["error"]["code"] == "store_unavailable"
            assert answer.body.get("status") == ("failed" if stream else None)
        assert stage.mcp.calls == []


async def test_approval_works_alike_over_chat_completions(placement: str, tmp_path: Path) -> None:
    async with open_stage(placement, tmp_path, upstream_yaml="api: chat_completions") as stage:
        for stream in (False, True):
            first = await ask(stage, stream, "a", "b")
            yes, no = requests(first)
            stage.model.play(text("Done."))
            second = check(await answer_with(stage, stream, first, [reply(yes), reply(no, approve=False)]))
            assert second.item_types == ["mcp_call", "message"]
            told = [message["content"] for message in stage.model.asked[0]["messages"] if message["role"] == "tool"]
            assert told == ["a", "The user did not approve this call: it was not run."]
        assert stage.mcp.calls == [("echo", {"text": "a"})] * 2
