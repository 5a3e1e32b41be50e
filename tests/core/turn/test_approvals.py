"""Calls that a user must approve, over whole turns: asked for, approved once, denied, and refused after any change."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from attache_core.errors import ClientError, StoreError, UpstreamError
from attache_core.events.event import Event
from attache_core.json_codec import Json
from attache_core.storage.conversations import Conversation, Lease
from attache_core.storage.store import StoredTurn
from attache_core.testing.mcp_server import RunningMcpServer, running_mcp_server
from attache_core.testing.memory_store import MemoryStore
from attache_core.tools.builtin import builtin_tool_types
from attache_core.tools.mcp.servers import McpServers, open_mcp_servers
from attache_core.tools.mcp.settings import McpSettings
from attache_core.turn.execute import Engine, execute
from attache_core.turn.loop import LoopLimits
from attache_core.types.turn import TurnRequest
from core.events.canonical_stream import check_stream
from core.turn.test_loop import Answer, call, kinds, message

LIMITS = LoopLimits()


@dataclass
class Gateway:
    """A gateway whose model says what the test wants, over one store and one MCP server."""

    server: RunningMcpServer
    servers: McpServers
    stream: bool
    store: MemoryStore = field(default_factory=MemoryStore)
    answers: list[list[Json] | None] = field(default_factory=list)
    asked: list[Json] = field(default_factory=list)

    def says(self, *answers: list[Json] | None) -> None:
        """What the model is to say, round by round; None for a model that is down."""
        self.answers = list(answers)
        self.asked.clear()

    async def _send(self, turn: TurnRequest) -> Any:
        self.asked.append(turn.body)
        output = self.answers.pop(0)
        if output is None:
            raise UpstreamError("down")
        return Answer({"id": "resp_x", "status": "completed", "output": output})

    def tool(self, **fields: Any) -> Json:
        return {"type": "mcp", "server_label": "demo", "server_url": self.server.url, **fields}

    async def turn(self, given: Any, tenant: str = "t", limits: LoopLimits = LIMITS, **body: Any) -> Json:
        engine = Engine(self.store, builtin_tool_types(self.servers), self._send, loop=limits)
        request = {"model": "m", "input": given, "tools": [self.tool()], "stream": self.stream, **body}
        events: list[Event] = [event async for event in execute(TurnRequest(request).with_facts(tenant=tenant), engine)]
        if self.stream:
            check_stream(events)
        response: Json = events[-1].data["response"]
        return response

    async def asking(self, *calls: Json, **body: Any) -> Json:
        """A turn that ends with requests for these calls."""
        self.says(list(calls or [call("echo", '{"text": "a"}')]))
        return await self.turn("Hi", **body)

    async def refusal(self, given: Any, **body: Any) -> str:
        """What a turn is refused with, after a look that nothing ran."""
        before = list(self.server.calls)
        self.says()
        with pytest.raises(ClientError) as refused:
            await self.turn(given, **body)
        assert (refused.value.http_status, refused.value.param) == (400, "input")
        assert (self.server.calls, self.asked) == (before, [])
        return refused.value.message


@pytest.fixture(params=[False, True], ids=["json", "sse"])
async def gateway(request: pytest.FixtureRequest) -> AsyncIterator[Gateway]:
    settings = McpSettings(allow_private_addresses=True)
    async with running_mcp_server() as server, open_mcp_servers(settings) as servers:
        yield Gateway(server, servers, request.param)


def requests(response: Json) -> list[Json]:
    return [item for item in response["output"] if item["type"] == "mcp_approval_request"]


def reply(request: Json, *, approve: bool = True, **fields: Any) -> Json:
    return {"type": "mcp_approval_response", "approval_request_id": request["id"], "approve": approve, **fields}


def replies(response: Json) -> list[Json]:
    return [reply(request) for request in requests(response)]


def told(body: Json) -> list[tuple[str, Any]]:
    return [(item["type"], item.get("output")) for item in body["input"]]


async def test_call_that_wants_approval_is_not_run_and_the_model_is_not_asked_again(gateway: Gateway) -> None:
    response = await gateway.asking(call("echo", '{"text": "a"}'), call("add", '{"a": 1, "b": 2}'))

    assert (response["status"], kinds(response)) == ("completed", ["mcp_list_tools", *["mcp_approval_request"] * 2])
    assert [{**item, "id": item["id"][:5]} for item in requests(response)] == [
        {"id": "mcpr_", "type": "mcp_approval_request", "name": name, "arguments": text, "server_label": "demo"}
        for name, text in (("echo", '{"text": "a"}'), ("add", '{"a": 1, "b": 2}'))
    ]
    assert (gateway.server.calls, len(gateway.asked)) == ([], 1)
    assert response["tools"][0]["require_approval"] is None


async def test_approved_calls_run_once_before_the_model_is_asked_and_are_told_in_their_place(gateway: Gateway) -> None:
    first = await gateway.asking(call("echo", '{"text": "a"}'), message("Wait."), call("echo", '{"text": "b"}'))
    gateway.says([message("Done.")], [message("Bye.")])

    second = await gateway.turn([*reversed(replies(first))], previous_response_id=first["id"])
    third = await gateway.turn("Thanks", previous_response_id=second["id"])

    made = [item for item in second["output"] if item["type"] == "mcp_call"]
    assert kinds(second) == ["mcp_call", "mcp_call", "message"]
    assert [(item["approval_request_id"], item["output"], item["status"]) for item in made] == [
        (request["id"], output, "completed") for request, output in zip(requests(first), "ab", strict=True)
    ]
    assert sorted(gateway.server.calls, key=str) == [("echo", {"text": "a"}), ("echo", {"text": "b"})]
    assert told(gateway.asked[0]) == [
        ("message", None),
        ("function_call", None),
        ("function_call_output", "a"),
        ("message", None),
        ("function_call", None),
        ("function_call_output", "b"),
    ]
    assert gateway.asked[1]["input"][:6] == gateway.asked[0]["input"]
    assert kinds(third) == ["message"]


async def test_denied_call_is_not_run_and_the_model_is_told_of_it_now_and_later(gateway: Gateway) -> None:
    first = await gateway.asking()
    gateway.says([message("A pity.")], [message("Bye.")])

    no = reply(requests(first)[0], approve=False, reason="Too dear.")
    second = await gateway.turn([no], previous_response_id=first["id"])
    await gateway.turn("Why?", previous_response_id=second["id"])

    said = "The user did not approve this call: it was not run. The user's reason: Too dear."
    assert (kinds(second), gateway.server.calls) == (["message"], [])
    assert told(gateway.asked[0])[1:] == [("function_call", None), ("function_call_output", said)]
    assert gateway.asked[1]["input"][:3] == gateway.asked[0]["input"]


async def test_other_calls_of_the_round_run_and_are_recorded(gateway: Gateway) -> None:
    """Those that are exempt, and the client's own, which are answered together with the approval."""
    function = {"type": "function", "name": "mine", "parameters": {"type": "object"}}
    tools = [gateway.tool(require_approval={"never": {"tool_names": ["echo"]}}), function]
    gateway.says(
        [call("mine"), call("add", '{"a": 1, "b": 2}'), call("echo", '{"text": "a"}')],
        [message("Done.")],
    )

    first = await gateway.turn("Hi", tools=tools)
    shown = ["mcp_list_tools", "function_call", "mcp_approval_request", "mcp_call"]
    assert (kinds(first), gateway.server.calls) == (shown, [("echo", {"text": "a"})])
    output = {"type": "function_call_output", "call_id": "call_mine", "output": "x"}
    await gateway.turn([*replies(first), output], previous_response_id=first["id"], tools=tools)

    assert gateway.server.calls[1:] == [("add", {"a": 1, "b": 2})]
    assert told(gateway.asked[1])[1:] == [
        ("function_call", None),
        ("function_call", None),
        ("function_call_output", '{"sum":3}'),
        ("function_call", None),
        ("function_call_output", "a"),
        ("function_call_output", "x"),
    ]


async def test_client_that_keeps_the_conversation_itself_answers_in_its_input(gateway: Gateway) -> None:
    """And sends all of it again later: what was answered then is history."""
    first = await gateway.asking(call("echo", '{"text": "a"}'), call("echo", '{"text": "b"}'))
    yes, no = requests(first)
    said: list[Json] = [{"role": "user", "content": "Hi"}, *first["output"], reply(yes), reply(no, approve=False)]
    gateway.says([message("Done.")], [message("Bye.")])

    second = await gateway.turn(said)
    await gateway.turn([*said, *second["output"], {"role": "user", "content": "Thanks"}])

    assert gateway.server.calls == [("echo", {"text": "a"})]
    assert gateway.asked[1]["input"][: len(gateway.asked[0]["input"])] == gateway.asked[0]["input"]


async def test_client_that_keeps_the_conversation_itself_may_deny_one_call_after_the_other(gateway: Gateway) -> None:
    first = await gateway.asking()
    said = [{"role": "user", "content": "Hi"}, *first["output"], reply(requests(first)[0], approve=False)]
    gateway.says([call("add", '{"a": 1, "b": 2}')], [message("A pity.")])

    second = await gateway.turn(said)
    third = await gateway.turn([*said, *second["output"], reply(requests(second)[0], approve=False)])

    assert (kinds(second), kinds(third), gateway.server.calls) == (["mcp_approval_request"], ["message"], [])


async def test_approval_that_was_added_to_a_conversation_runs_nothing_and_the_model_is_told(gateway: Gateway) -> None:
    await gateway.store.conversations.create("t", Conversation("conv_1", 0, {}), [])
    first = await gateway.asking(conversation="conv_1")
    added = {**reply(requests(first)[0]), "id": "mcpa_1"}
    await gateway.store.conversations.add_items("t", "conv_1", [added])
    gateway.says([message("Hm.")])

    await gateway.turn("Well?", conversation="conv_1")

    output = "The user approved this call, but this conversation has no result of it."
    assert told(gateway.asked[0])[1:3] == [("function_call", None), ("function_call_output", output)]
    assert gateway.server.calls == []


async def test_conversation_goes_on_after_an_approval_in_it(gateway: Gateway) -> None:
    await gateway.store.conversations.create("t", Conversation("conv_1", 0, {}), [])
    first = await gateway.asking(call("echo", '{"text": "a"}'), call("echo", '{"text": "b"}'), conversation="conv_1")
    gateway.says([message("Done.")], [message("Bye.")])
    yes, no = requests(first)

    second = await gateway.turn([reply(yes), reply(no, approve=False)], conversation="conv_1")
    await gateway.turn("Thanks", conversation="conv_1")

    assert (kinds(second), gateway.server.calls) == (["mcp_call", "message"], [("echo", {"text": "a"})])
    assert gateway.asked[1]["input"][: len(gateway.asked[0]["input"])] == gateway.asked[0]["input"]


async def test_conversation_whose_approval_was_spent_on_a_failed_turn_goes_on_without_the_request(
    gateway: Gateway,
) -> None:
    await gateway.store.conversations.create("t", Conversation("conv_1", 0, {}), [])
    first = await gateway.asking(conversation="conv_1")
    (request,) = requests(first)
    gateway.says(None)
    with suppress(UpstreamError):
        assert (await gateway.turn(replies(first), conversation="conv_1"))["status"] == "failed"
    assert "remove the request's item" in await gateway.refusal(replies(first), conversation="conv_1")

    await gateway.store.conversations.remove_item("t", "conv_1", request["id"])
    gateway.says([message("Hello again.")])

    assert kinds(await gateway.turn("Hi", conversation="conv_1")) == ["message"]
    assert gateway.server.calls == [("echo", {"text": "a"})]


async def test_model_may_ask_for_a_further_approval_in_the_turn_that_brings_one(gateway: Gateway) -> None:
    first = await gateway.asking()
    gateway.says([call("add", '{"a": 1, "b": 2}')], [message("Three.")])

    second = await gateway.turn(replies(first), previous_response_id=first["id"])
    assert kinds(second) == ["mcp_call", "mcp_approval_request"]
    third = await gateway.turn(replies(second), previous_response_id=second["id"])

    assert (kinds(third), [name for name, _ in gateway.server.calls]) == (["mcp_call", "message"], ["echo", "add"])


async def test_forced_choice_is_not_forced_again_after_an_answer(gateway: Gateway) -> None:
    forced: dict[str, Any] = {"tool_choice": "required"}
    for approve in (True, False):
        first = await gateway.asking(**forced)
        gateway.says([message("Done.")])
        answers = [reply(requests(first)[0], approve=approve)]
        response = await gateway.turn(answers, previous_response_id=first["id"], **forced)
        assert (gateway.asked[0]["tool_choice"], response["tool_choice"]) == ("auto", "required")


async def test_approved_calls_count_as_calls(gateway: Gateway) -> None:
    """Of the bound on calls, and of that on the same call."""
    same = call("echo", '{"text": "a"}')
    first = await gateway.asking(same, call("echo", '{"text": "b"}'))
    gateway.says([message("Done.")])
    second = await gateway.turn(replies(first), previous_response_id=first["id"], max_tool_calls=1)
    assert [item["output"] for item in second["output"] if item["type"] == "mcp_call"] == ["a", None]

    first = await gateway.asking(same)
    gateway.says([{**same, "call_id": "call_2"}], [message("Done.")])
    once = LoopLimits(max_identical_calls=1)
    exempt = [gateway.tool(require_approval="never")]
    second = await gateway.turn(replies(first), previous_response_id=first["id"], tools=exempt, limits=once)
    assert [item["output"] for item in second["output"] if item["type"] == "mcp_call"] == ["a", None]


async def test_call_that_could_not_run_is_an_error_to_the_model_and_no_question_to_the_user(gateway: Gateway) -> None:
    gateway.says([call("echo", "{"), call("echo", '{"text": 1}')], [call("echo", '{"text": "a"}')])

    response = await gateway.turn("Hi", max_tool_calls=3)
    assert kinds(response) == ["mcp_list_tools", "mcp_call", "mcp_call", "mcp_approval_request"]
    assert [item["status"] for item in response["output"] if item["type"] == "mcp_call"] == ["failed", "failed"]

    gateway.says([call("echo", '{"text": "a"}'), call("echo", '{"text": "b"}')])
    response = await gateway.turn("Hi", max_tool_calls=1)
    assert kinds(response) == ["mcp_list_tools", "mcp_approval_request", "mcp_call"]
    assert gateway.server.calls == []


async def test_approval_is_given_once(gateway: Gateway) -> None:
    """Whatever comes second, and whoever comes second."""
    first = await gateway.asking()
    (request,) = requests(first)
    gateway.says([message("Done.")])
    await gateway.turn(replies(first), previous_response_id=first["id"])

    for again in (reply(request), reply(request, approve=False)):
        message_ = await gateway.refusal([again], previous_response_id=first["id"])
        assert message_ == (
            f"The MCP approval request '{request['id']}' was answered before, and an answer is taken once. Continue "
            "from before the response that asked, or remove the request's item from the conversation."
        )
    assert gateway.server.calls == [("echo", {"text": "a"})]


async def test_of_two_continuations_at_once_one_runs_the_call(gateway: Gateway) -> None:
    first = await gateway.asking()
    gateway.says(*[[message("Done.")]] * 4)

    async def continued() -> str:
        try:
            return str((await gateway.turn(replies(first), previous_response_id=first["id"]))["status"])
        except ClientError as refused:
            return f"{refused.http_status} {refused.param}"

    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        turns = [tasks.create_task(continued()) for _ in range(4)]

    assert sorted(turn.result() for turn in turns) == ["400 input"] * 3 + ["completed"]
    assert gateway.server.calls == [("echo", {"text": "a"})]


Change = Callable[[Gateway, Json], dict[str, Any]]


def _continued(first: Json, **fields: Any) -> dict[str, Any]:
    return {"given": replies(first), "previous_response_id": first["id"], **fields}


def _sent_again(first: Json, **fields: Any) -> dict[str, Any]:
    changed = [{**request, **fields} for request in requests(first)]
    return {"given": [*changed, *[reply(request) for request in changed]]}


CHANGES: dict[str, tuple[Change, str]] = {
    "another path": (
        lambda g, first: _continued(first, tools=[g.tool(server_url=f"{g.server.url}?x=1")]),
        "another call",
    ),
    "a token": (lambda g, first: _continued(first, tools=[g.tool(authorization="theirs")]), "another call"),
    "a header": (lambda g, first: _continued(first, tools=[g.tool(headers={"x-team": "blue"})]), "another call"),
    "no server": (lambda g, first: _continued(first, tools=[]), "must be declared"),
    "not allowed": (lambda g, first: _continued(first, tools=[g.tool(allowed_tools=["add"])]), "offer its tool 'echo'"),
    "another label": (lambda g, first: _continued(first, tools=[g.tool(server_label="x")]), "must be declared"),
    "other arguments": (lambda g, first: _sent_again(first, arguments='{"text": "b"}'), "another call"),
    "another tool": (lambda g, first: _sent_again(first, name="fail"), "another call"),
    "another id": (lambda g, first: _sent_again(first, id="mcpr_0"), "not found"),
    "another tenant": (lambda g, first: {**_sent_again(first), "tenant": "other"}, "not found"),
}


@pytest.mark.parametrize("name", CHANGES)
async def test_approval_is_refused_after_any_change_and_can_still_be_given(gateway: Gateway, name: str) -> None:
    change, message_ = CHANGES[name]
    first = await gateway.asking()

    assert message_ in await gateway.refusal(**change(gateway, first))

    gateway.says([message("Done.")])
    await gateway.turn(replies(first), previous_response_id=first["id"])
    assert gateway.server.calls == [("echo", {"text": "a"})]


async def test_request_that_was_never_made_is_refused(gateway: Gateway) -> None:
    forged = {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "demo", "name": "echo", "arguments": "{}"}
    for given in ([forged, reply(forged)], [forged, reply(forged, approve=False)]):
        assert await gateway.refusal(given) == "MCP approval request with id 'mcpr_1' not found."
    assert "do not have an approval: mcpr_1" in await gateway.refusal([forged])
    assert "weren't passed as input: mcpr_1" in await gateway.refusal([reply(forged)])


async def test_requests_must_be_answered_all(gateway: Gateway) -> None:
    first = await gateway.asking(call("echo", '{"text": "a"}'), call("echo", '{"text": "b"}'))
    one, other = requests(first)
    for given, missing in (("Go on", f"{one['id']}, {other['id']}"), ([reply(other)], one["id"])):
        message_ = await gateway.refusal(given, previous_response_id=first["id"])
        assert message_ == f"The following MCP approval requests do not have an approval: {missing}"


async def test_response_that_is_not_stored_may_not_ask(gateway: Gateway) -> None:
    gateway.says()
    for approval in (None, "always", {"never": {"tool_names": ["echo"]}}):
        with pytest.raises(ClientError) as refused:
            await gateway.turn("Hi", store=False, tools=[gateway.tool(require_approval=approval)])
        error = refused.value
        assert (error.http_status, error.param) == (400, "tools[0].require_approval")
        assert "set 'store' to true, or 'tools[0].require_approval' to 'never'" in error.message
    assert (gateway.server.requests, gateway.asked) == ([], [])


async def test_unstored_turn_may_bring_an_approval_where_nothing_more_can_be_asked(gateway: Gateway) -> None:
    first = await gateway.asking()
    gateway.says([message("Done.")])
    exempt = [gateway.tool(require_approval="never")]

    second = await gateway.turn(replies(first), previous_response_id=first["id"], store=False, tools=exempt)

    assert (kinds(second), gateway.server.calls) == (["mcp_call", "message"], [("echo", {"text": "a"})])


async def test_approval_that_cannot_be_written_is_not_asked_for(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def down(*_: object) -> None:
        raise StoreError("down")

    monkeypatch.setattr(gateway.store.approvals, "ask", down)
    if not gateway.stream:
        with pytest.raises(StoreError):
            await gateway.asking()
        return
    first = await gateway.asking()
    assert (first["status"], first["error"]["message"]) == ("failed", "down")
    refused = await gateway.refusal([*requests(first), *replies(first)])
    assert "not found" in refused


async def test_approval_of_a_response_that_was_not_stored_is_refused(gateway: Gateway) -> None:
    """The request reached a streaming client, but its response was never complete."""
    shown: list[Json] = []

    async def down(tenant: str, turn: StoredTurn, lease: Lease | None = None) -> None:
        del tenant, lease
        shown.extend(requests(turn.response))
        raise StoreError("down")

    working = gateway.store.save_turn
    gateway.store.save_turn = down  # type: ignore[method-assign]  # a store that fails between two calls
    with pytest.raises(StoreError):
        await gateway.asking()
    gateway.store.save_turn = working  # type: ignore[method-assign]  # and works again

    assert "cannot be answered" in await gateway.refusal([*shown, *[reply(request) for request in shown]])
