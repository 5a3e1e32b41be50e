from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

import pytest

from attache_core.errors import ClientError, UpstreamError
from attache_core.events.event import Event, terminal_event
from attache_core.json_codec import Json
from attache_core.testing.mcp_server import RunningMcpServer, running_mcp_server
from attache_core.tools.builtin import builtin_tool_types
from attache_core.tools.mcp.servers import McpServers, open_mcp_servers
from attache_core.tools.mcp.settings import McpSettings
from attache_core.tools.scheduler import CallLimits
from attache_core.turn.below import Below
from attache_core.turn.loop import LoopLimits, run_tool_loop
from attache_core.turn.pending_calls import check_calls
from attache_core.turn.round import run_round
from attache_core.types.turn import TurnRequest
from core.events.canonical_stream import check_stream

USAGE = {"input_tokens": 10, "output_tokens": 1, "total_tokens": 11}


def message(text: str) -> Json:
    return {
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": text}],
    }


def call(name: str, arguments: str = "{}") -> Json:
    return {"type": "function_call", "call_id": f"call_{name}", "name": name, "arguments": arguments}


class Model:
    """Answers each round with the next of its answers, and remembers what it was asked."""

    def __init__(self, *answers: list[Json] | Exception, status: str = "completed") -> None:
        self.asked: list[Json] = []
        self._answers = list(answers)
        self._status = status

    def __call__(self, turn: TurnRequest) -> AsyncGenerator[Event, None]:
        self.asked.append(turn.body)
        return run_round(turn, self._send)

    async def _send(self, turn: TurnRequest) -> Any:
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return Answer({"id": "resp_x", "status": self._status, "output": answer, "usage": USAGE})


class Answer:
    status = 200

    def __init__(self, response: Json) -> None:
        from attache_core.json_codec import encode

        self.headers = {"content-type": "application/json"}
        self._body = encode(response)

    @property
    def body(self) -> AsyncIterator[bytes]:
        async def whole() -> AsyncIterator[bytes]:
            yield self._body

        return whole()


@pytest.fixture
async def mcp() -> AsyncIterator[McpServers]:
    async with open_mcp_servers(McpSettings(allow_private_addresses=True)) as servers:
        yield servers


@pytest.fixture
async def server() -> AsyncIterator[RunningMcpServer]:
    async with running_mcp_server() as running:
        yield running


Ask = Callable[..., Any]


@pytest.fixture(params=[False, True], ids=["json", "sse"])
def ask(request: pytest.FixtureRequest, mcp: McpServers, server: RunningMcpServer) -> Ask:
    """Run one turn with the server's tools; gives the final response, after checking the stream."""

    async def run(model: Below, limits: LoopLimits | None = None, **body: Any) -> Json:
        tool = {"type": "mcp", "server_label": "demo", "server_url": server.url, "require_approval": "never"}
        turn = TurnRequest({"model": "m", "input": "Hi", "tools": [tool], "stream": request.param, **body})
        events = [event async for event in run_tool_loop(turn, model, builtin_tool_types(mcp), limits or LoopLimits())]
        if request.param:
            check_stream(events)
        else:
            assert len(events) == 1
        response: Json = events[-1].data["response"]
        return response

    return run


def kinds(response: Json) -> list[str]:
    return [item["type"] for item in response["output"]]


async def test_items_keep_the_models_order_around_gateway_calls(ask: Ask) -> None:
    said = [message("First."), call("echo", '{"text": "a"}'), message("Second."), call("echo", '{"text": "b"}')]
    model = Model(said, [message("Done.")])

    response = await ask(model)

    assert kinds(response) == ["mcp_list_tools", "message", "mcp_call", "message", "mcp_call", "message"]
    assert [item["output"] for item in response["output"] if item["type"] == "mcp_call"] == ["a", "b"]
    told = [(item["type"], item.get("output")) for item in model.asked[1]["input"][1:]]
    assert told == [
        ("message", None),
        ("function_call", None),
        ("function_call_output", "a"),
        ("message", None),
        ("function_call", None),
        ("function_call_output", "b"),
    ]


async def test_usage_is_that_of_all_rounds_also_when_a_later_one_fails(ask: Ask) -> None:
    done = await ask(Model([call("echo", '{"text": "a"}')], [message("Done.")]))

    assert (done["usage"]["total_tokens"], done["status"]) == (22, "completed")


async def test_failure_of_a_later_round_is_an_error_to_a_waiting_client_and_an_event_to_a_streaming_one(
    ask: Ask, request: pytest.FixtureRequest
) -> None:
    model = Model([call("echo", '{"text": "a"}')], UpstreamError("down", code="upstream_unavailable"))

    if "json" in request.node.name:
        with pytest.raises(UpstreamError, match="down") as failed:
            await ask(model)
        assert failed.value.headers == {"x-should-retry": "false"}
    else:
        response = await ask(model)
        assert (response["status"], response["error"]) == (
            "failed",
            {"code": "upstream_unavailable", "message": "down"},
        )
        assert response["usage"]["total_tokens"] == 11
        assert kinds(response) == ["mcp_list_tools", "mcp_call"]


async def test_calls_of_a_round_that_was_cut_off_are_neither_run_nor_shown(ask: Ask, server: RunningMcpServer) -> None:
    model = Model([message("I will"), call("echo", '{"text": "a"}'), message("echo.")], status="incomplete")

    response = await ask(model)

    assert (response["status"], kinds(response)) == ("incomplete", ["mcp_list_tools", "message", "message"])
    assert server.calls == []


async def test_malformed_arguments_are_an_error_to_the_model_and_reach_no_tool(
    ask: Ask, server: RunningMcpServer
) -> None:
    model = Model([call("echo", "{'text': 1"), call("echo", "[1]")], [message("Sorry.")])

    response = await ask(model)

    assert [item["status"] for item in response["output"] if item["type"] == "mcp_call"] == ["failed", "failed"]
    assert server.calls == []
    assert "not valid JSON" in model.asked[1]["input"][2]["output"]


async def test_hanging_call_times_out_and_its_siblings_have_their_results(ask: Ask) -> None:
    model = Model([call("hang"), call("fail", '{"message": "no"}'), call("echo", '{"text": "c"}')], [message("Done.")])

    response = await ask(model, LoopLimits(calls=CallLimits(call_timeout_s=1.0)))

    ended = [(item["status"], item["output"]) for item in response["output"] if item["type"] == "mcp_call"]
    assert ended == [("failed", None), ("failed", None), ("completed", "c")]


@pytest.mark.parametrize("bound", [{"max_tool_calls": 2}, {"limits": LoopLimits(max_calls=2)}], ids=str)
async def test_calls_over_the_budget_are_not_run_and_the_model_is_told(
    ask: Ask, server: RunningMcpServer, bound: dict[str, Any]
) -> None:
    model = Model([call("echo", f'{{"text": "{n}"}}') for n in "abc"], [message("Done.")])

    response = await ask(model, **bound)

    assert [item["output"] for item in response["output"] if item["type"] == "mcp_call"] == ["a", "b", None]
    assert len(server.calls) == 2
    assert "No more tool calls" in model.asked[1]["input"][-1]["output"]


async def test_results_over_the_budget_are_left_out_and_the_model_is_told(ask: Ask) -> None:
    model = Model([call("echo", f'{{"text": "{"x" * 600}"}}')] * 2, [message("Done.")])

    response = await ask(model, LoopLimits(max_output_bytes=1000))

    assert [item["status"] for item in response["output"] if item["type"] == "mcp_call"] == ["completed", "failed"]


async def test_round_limit_ends_incomplete_and_keeps_all_work(ask: Ask) -> None:
    model = Model(*[[call("echo", '{"text": "again"}')]] * 3)

    response = await ask(model, LoopLimits(max_rounds=3))

    assert (response["status"], response["incomplete_details"]) == ("incomplete", {"reason": "max_messages"})
    assert kinds(response) == ["mcp_list_tools", "mcp_call", "mcp_call", "mcp_call"]
    assert response["usage"]["total_tokens"] == 33


async def test_unknown_function_is_the_clients_and_ends_the_turn(ask: Ask, server: RunningMcpServer) -> None:
    response = await ask(Model([call("launch_rockets"), call("echo", '{"text": "a"}')]))

    assert kinds(response) == ["mcp_list_tools", "function_call", "mcp_call"]
    assert [name for name, _ in server.calls] == ["echo"]


async def test_list_that_failed_is_listed_again_in_the_next_turn(ask: Ask, server: RunningMcpServer) -> None:
    gone: Json = {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "demo", "tools": [], "error": "refused"}
    user: Json = {"type": "message", "role": "user", "content": "Hi"}
    listed = (await ask(Model([message("Hi.")]), input=[gone, user]))["output"][0]

    again = await ask(Model([message("Hi.")]), input=[listed, user])
    fewer = await ask(Model([message("Hi.")]), input=[{**listed, "tools": listed["tools"][:1]}, user])

    assert listed["type"] == "mcp_list_tools"
    assert (kinds(again), kinds(fewer)) == (["message"], ["mcp_list_tools", "message"])


@pytest.mark.parametrize(
    ("choice", "first", "later"),
    [
        ("required", "required", "auto"),
        ("none", "none", "none"),
        ("auto", "auto", "auto"),
        ({"type": "function", "name": "echo"}, {"type": "function", "name": "echo"}, "auto"),
        ({"type": "mcp", "server_label": "demo", "name": "echo"}, {"type": "function", "name": "echo"}, "auto"),
        ({"type": "mcp", "server_label": "demo"}, "required", "auto"),
    ],
    ids=str,
)
async def test_forced_choice_holds_for_the_first_round_only(ask: Ask, choice: Any, first: Any, later: Any) -> None:
    model = Model([call("echo", '{"text": "a"}')], [message("Done.")])

    response = await ask(model, tool_choice=choice)

    assert [asked["tool_choice"] for asked in model.asked] == [first, later]
    assert response["tool_choice"] == choice


async def test_turn_without_tools_leaves_the_request_as_it_is(mcp: McpServers) -> None:
    model = Model([message("Hi.")])
    turn = TurnRequest({"model": "m", "input": "Hi", "seed": 1})

    [event async for event in run_tool_loop(turn, model, builtin_tool_types(mcp), LoopLimits())]

    assert model.asked == [turn.body]


async def test_tool_type_that_nobody_runs_is_refused(mcp: McpServers) -> None:
    turn = TurnRequest({"model": "m", "input": "Hi", "tools": [{"type": "time_machine"}]})

    with pytest.raises(ClientError) as refused:
        [event async for event in run_tool_loop(turn, Model(), builtin_tool_types(mcp), LoopLimits())]

    assert refused.value.param == "tools[0].type"


async def test_closing_the_turn_ends_the_call_that_runs_and_what_is_below(
    mcp: McpServers, server: RunningMcpServer
) -> None:
    closed: list[str] = []

    async def below(turn: TurnRequest) -> AsyncGenerator[Event, None]:
        try:
            yield terminal_event({"id": "r", "status": "completed", "output": [{**call("hang"), "id": "fc_1"}]})
        finally:
            closed.append("below")

    tool = {"type": "mcp", "server_label": "demo", "server_url": server.url, "require_approval": "never"}
    turn = TurnRequest({"model": "m", "input": "Hi", "tools": [tool], "stream": True})
    async with aclosing(run_tool_loop(turn, below, builtin_tool_types(mcp), LoopLimits())) as events:
        async for event in events:
            if event.type == "response.mcp_call_arguments.done":
                await server.until(lambda seen: len(seen.calls) == 1)
                break

    assert closed == ["below"]
    await server.until(lambda seen: seen.cancelled == ["hang"])


# What a turn may have of its calls


async def test_same_call_over_and_over_is_answered_with_an_error_and_the_turn_goes_on(
    ask: Ask, server: RunningMcpServer
) -> None:
    same = ['{"text": "a"}', '{"text":"a"}', ' {"text": "a"} ', '{"text": "a"}']
    model = Model(*[[call("echo", arguments)] for arguments in same], [call("echo", '{"text": "b"}')], [message("Ok.")])

    response = await ask(model)

    ended = [(item["status"], item["output"]) for item in response["output"] if item["type"] == "mcp_call"]
    assert ended == [*[("completed", "a")] * 3, ("failed", None), ("completed", "b")]
    assert len(server.calls) == 4
    assert "was made 3 times" in model.asked[4]["input"][-1]["output"]
    assert response["status"] == "completed"


async def test_bound_on_the_same_call_is_a_setting_and_holds_within_a_round(ask: Ask, server: RunningMcpServer) -> None:
    model = Model([call("echo", '{"text": "a"}')] * 3, [message("Ok.")])

    response = await ask(model, LoopLimits(max_identical_calls=1))

    ended = [item["status"] for item in response["output"] if item["type"] == "mcp_call"]
    assert (ended, len(server.calls)) == (["completed", "failed", "failed"], 1)


async def test_arguments_nested_too_deeply_are_an_error_to_the_model_and_the_turn_goes_on(
    ask: Ask, server: RunningMcpServer
) -> None:
    deep = '{"text": ' + "[" * 1000 + "]" * 1000 + "}"
    model = Model([call("echo", deep)], [message("Ok.")])

    response = await ask(model)

    assert (response["status"], server.calls) == ("completed", [])
    assert "not valid JSON" in model.asked[1]["input"][-1]["output"]


async def test_calls_that_differ_in_the_last_digit_of_a_large_integer_are_not_the_same(ask: Ask) -> None:
    many = [[call("echo", f'{{"text": "a", "id": {10**25 + number}}}')] for number in range(3)]

    response = await ask(Model(*many, [message("Ok.")]), LoopLimits(max_identical_calls=1))

    told = [str(item["error"]) for item in response["output"] if item["type"] == "mcp_call"]
    assert [text for text in told if "was made" in text] == []


@pytest.mark.parametrize("arguments", ["{}", '{"text": 1}', ""])
async def test_arguments_that_are_not_of_the_schema_reach_no_tool_and_count(
    ask: Ask, server: RunningMcpServer, arguments: str
) -> None:
    model = Model([call("echo", arguments), call("echo", '{"text": "b"}')], [message("Ok.")])

    response = await ask(model, max_tool_calls=1)

    ended = [(item["status"], item["arguments"]) for item in response["output"] if item["type"] == "mcp_call"]
    assert ended == [("failed", arguments), ("failed", '{"text": "b"}')]
    assert server.calls == []
    outputs = [item["output"] for item in model.asked[1]["input"] if item["type"] == "function_call_output"]
    assert "are not what the tool takes" in outputs[0]
    assert "No more tool calls" in outputs[1]


async def test_no_arguments_are_an_empty_object(ask: Ask, server: RunningMcpServer) -> None:
    await ask(Model([call("image", "")], [message("Ok.")]))

    assert server.calls == [("image", {})]


async def test_calls_that_were_not_to_be_parallel_run_one_after_the_other(ask: Ask, server: RunningMcpServer) -> None:
    model = Model([call("hang"), call("echo", '{"text": "b"}')], [message("Ok.")])
    limits = LoopLimits(calls=CallLimits(call_timeout_s=0.5))

    response = await ask(model, limits, parallel_tool_calls=False)

    assert [item["status"] for item in response["output"] if item["type"] == "mcp_call"] == ["failed", "completed"]
    assert [(name, server.cancelled) for name, _ in server.calls] == [("hang", ["hang"]), ("echo", ["hang"])]
    assert [asked["parallel_tool_calls"] for asked in model.asked] == [False, False]


# Tools of the client among those of the gateway

CLIENT_CALLS: list[tuple[Json, str, str, Json, Json]] = [
    ({"type": "custom", "name": "say"}, "say", '{"input": "x"}',
     {"type": "custom_tool_call", "name": "say", "input": "x"}, {"type": "custom_tool_call_output", "output": "y"}),
    ({"type": "shell"}, "shell", '{"commands": ["ls"]}',
     {"type": "shell_call", "action": {"commands": ["ls"], "max_output_length": None, "timeout_ms": None}},
     {"type": "shell_call_output", "output": []}),
    ({"type": "apply_patch"}, "apply_patch", '{"type": "delete_file", "path": "a"}',
     {"type": "apply_patch_call", "operation": {"type": "delete_file", "path": "a"}},
     {"type": "apply_patch_call_output", "status": "completed"}),
    ({"type": "tool_search", "execution": "client"}, "tool_search", '{"query": "x"}',
     {"type": "tool_search_call", "arguments": {"query": "x"}, "execution": "client"},
     {"type": "tool_search_output", "tools": []}),
    ({"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "f"}]}, "n__f", "{}",
     {"type": "function_call", "name": "f", "namespace": "n", "arguments": "{}"},
     {"type": "function_call_output", "output": "y"}),
]  # fmt: skip


@pytest.mark.parametrize("before", [True, False], ids=["first", "last"])
@pytest.mark.parametrize("called", CLIENT_CALLS)
async def test_clients_call_beside_a_gateway_call_ends_the_turn_and_its_output_alone_continues_it(
    ask: Ask, server: RunningMcpServer, before: bool, called: tuple[Json, str, str, Json, Json]
) -> None:
    tool, name, arguments, item, output = called
    demo = {"type": "mcp", "server_label": "demo", "server_url": server.url, "require_approval": "never"}
    tools = [demo, tool]
    calls = [call(name, arguments), call("echo", '{"text": "a"}')]

    first = await ask(Model(calls if before else calls[::-1]), tools=tools)

    shown = [each for each in first["output"] if each["type"] != "mcp_list_tools"]
    clients = shown[0 if before else 1]
    assert {**clients, **item, "call_id": f"call_{name}", "status": "completed"} == clients
    assert shown[1 if before else 0]["output"] == "a"

    answered = {**output, "call_id": clients["call_id"]}
    history = [{"type": "message", "role": "user", "content": "Hi"}, *first["output"]]
    check_calls([*history, answered])
    for wrong in ([], [answered, answered], [{**answered, "call_id": "other"}], [{"type": "computer_call_output"}]):
        with pytest.raises(ClientError):
            check_calls([*history, *({**each, "call_id": each.get("call_id", clients["call_id"])} for each in wrong)])
    model = Model([message("Done.")])
    await ask(model, tools=tools, input=[*history, answered])
    told = [each for each in model.asked[0]["input"] if each["type"] == "function_call"]
    assert [each["name"] for each in told] == ([name, "echo"] if before else ["echo", name])


@pytest.mark.parametrize(
    ("choice", "told"),
    [
        ({"type": "custom", "name": "say"}, {"type": "function", "name": "say"}),
        ({"type": "shell"}, {"type": "function", "name": "shell"}),
        ({"type": "apply_patch"}, {"type": "function", "name": "apply_patch"}),
    ],
    ids=str,
)
async def test_choice_of_a_tool_that_is_no_function_names_the_one_that_stands_for_it(
    ask: Ask, choice: Json, told: Json
) -> None:
    model = Model([message("Hi.")])

    response = await ask(model, tools=[tool for tool, *_ in CLIENT_CALLS[:3]], tool_choice=choice)

    assert (model.asked[0]["tool_choice"], response["tool_choice"]) == (told, choice)
