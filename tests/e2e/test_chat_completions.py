"""An inference server that speaks only the Chat Completions API: the client must not notice."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from attache_core.events.event import Event
from attache_core.json_codec import Json
from attache_core.testing.model_script import (
    Reply,
    call,
    dies_after,
    ends_without_terminal,
    function_calls,
    garbage,
    http_error,
    incomplete,
    reasoning_then,
    says,
    stalls_after,
    stream_error,
    text,
    thinks,
    with_usage,
)
from core.events.canonical_stream import check_stream
from e2e.stage import Stage, check, decode_events, open_stage
from e2e.test_client_tools import CASES

EXPLICIT_CHAIN = """
chains:
  responses:
    - filter: validate
      unsupported_tools: omit
    - filter: persist
    - filter: rehydrate
    - filter: tool_dispatch
      loop:
        - filter: chat_completions
          max_tokens_field: max_completion_tokens
          reasoning_fields: []
          late_system_role: user
"""

WITHOUT_TOOL_DISPATCH = """
chains:
  responses:
    - filter: validate
    - filter: persist
    - filter: rehydrate
    - filter: chat_completions
"""

CODEX = Path(__file__).parents[1] / "core" / "types" / "data" / "codex_request.json"

WEATHER = {
    "type": "function",
    "name": "get_forecast",
    "description": "The forecast for a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
PATCH_FUNCTION = {
    "name": "patch",
    "description": 'Patch.\n\nThe input must follow this lark grammar:\nstart: "*"',
    "parameters": {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]},
    "strict": False,
}
PNG = "data:image/png;base64,iVBORw0KGgo="
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chat_stage(placement: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    folder = tmp_path_factory.mktemp(f"chat-{placement}")
    async with open_stage(placement, folder, upstream_yaml="api: chat_completions") as stage:
        yield stage


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def own_settings(placement: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    async with open_stage(placement, tmp_path_factory.mktemp("own"), gateway_yaml=EXPLICIT_CHAIN) as stage:
        yield stage


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def loopless_stage(placement: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    folder = tmp_path_factory.mktemp("loopless")
    async with open_stage(placement, folder, gateway_yaml=WITHOUT_TOOL_DISPATCH) as stage:
        yield stage


@pytest.fixture
def without_tool_dispatch(loopless_stage: Stage) -> Stage:
    loopless_stage.model.play()
    return loopless_stage


@pytest.fixture
def chat(chat_stage: Stage) -> Stage:
    chat_stage.model.play()
    return chat_stage


def spoken(messages: list[Json]) -> list[tuple[str, object]]:
    return [(message["role"], message["content"]) for message in messages]


async def test_text_turn_is_asked_over_chat_completions_and_stored_as_sent(chat: Stage, stream: bool) -> None:
    chat.model.play(with_usage(9, 5, text("Hello there.")))

    answer = check(await chat.ask(input="Hi", instructions="Be brief.", max_output_tokens=50, seed=7, stream=stream))

    (request,) = chat.model.requests
    assert (request.method, request.path) == ("POST", "/v1/chat/completions")
    assert request.body == {
        "model": "attache-demo",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
        "max_tokens": 50,
        "seed": 7,
        **({"stream": True, "stream_options": {"include_usage": True}} if stream else {}),
    }
    assert (answer.text, answer.body["status"], answer.body["model"]) == ("Hello there.", "completed", "attache-demo")
    usage = answer.body["usage"]
    assert (usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]) == (9, 5, 14)
    assert (await chat.get(f"/v1/responses/{answer.body['id']}")).json() == answer.body


async def test_image_reaches_the_server(chat: Stage, stream: bool) -> None:
    chat.model.play(text("A dot."))
    parts = [{"type": "input_text", "text": "What is it?"}, {"type": "input_image", "image_url": PNG, "detail": "low"}]

    answer = check(await chat.ask(input=[{"role": "user", "content": parts}], stream=stream))

    assert answer.text == "A dot."
    assert chat.model.asked[0]["messages"][0]["content"] == [
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": PNG, "detail": "low"}},
    ]


async def test_reasoning_is_an_item_and_goes_back_with_its_message(chat: Stage, stream: bool) -> None:
    chat.model.play(reasoning_then("They greet me.", "Hello."), text("Yes."))

    first = check(await chat.ask(input="Hi", reasoning={"effort": "low"}, stream=stream))
    check(await chat.ask(input="Sure?", previous_response_id=first.body["id"], stream=stream))

    assert first.item_types == ["reasoning", "message"]
    assert first.body["output"][0]["content"] == [{"type": "reasoning_text", "text": "They greet me."}]
    assert chat.model.asked[0]["reasoning_effort"] == "low"
    assert chat.model.asked[1]["messages"] == [
        {"role": "user", "content": "Hi"},
        {
            "role": "assistant",
            "content": "Hello.",
            "reasoning_content": "They greet me.",
            "reasoning": "They greet me.",
        },
        {"role": "user", "content": "Sure?"},
    ]


async def test_function_call_is_answered_by_the_client_in_a_continuation(chat: Stage, stream: bool) -> None:
    first_reply = says(thinks("Which tool?"), "Let me see.", call("get_forecast", {"city": "Oslo"}))
    chat.model.play(first_reply, text("Snow in Oslo."))

    first = check(await chat.ask(input="Weather in Oslo?", tools=[WEATHER], stream=stream))
    called = first.body["output"][-1]
    output = {"type": "function_call_output", "call_id": called["call_id"], "output": "snow"}
    second = check(
        await chat.ask(input=[output], previous_response_id=first.body["id"], tools=[WEATHER], stream=stream)
    )

    assert first.item_types == ["reasoning", "message", "function_call"]
    assert (called["name"], called["arguments"], called["status"]) == ("get_forecast", '{"city": "Oslo"}', "completed")
    assert second.text == "Snow in Oslo."
    function = {name: WEATHER[name] for name in ("name", "description", "parameters")}
    assert chat.model.asked[1]["tools"] == [{"type": "function", "function": function}]
    told = chat.model.asked[1]["messages"]
    assert spoken(told) == [("user", "Weather in Oslo?"), ("assistant", "Let me see."), ("tool", "snow")]
    assert told[1]["tool_calls"][0]["id"] == told[2]["tool_call_id"] == called["call_id"]


async def test_mcp_tool_is_run_and_its_result_told_to_the_server(chat: Stage, stream: bool) -> None:
    chat.model.play(function_calls(call("echo", {"text": "hi"})), text("It said hi."))

    answer = check(await chat.ask(input="Echo hi", tools=[chat.mcp_tool()], stream=stream))

    assert answer.item_types == ["mcp_list_tools", "mcp_call", "message"]
    assert (answer.text, answer.body["output"][1]["error"]) == ("It said hi.", None)
    roles = [message["role"] for message in chat.model.asked[1]["messages"]]
    assert roles == ["user", "assistant", "tool"]
    assert "hi" in chat.model.asked[1]["messages"][2]["content"]


@pytest.mark.parametrize("written", ["", '{"text": "h', "[1]"])
async def test_turn_goes_on_after_a_call_whose_arguments_are_no_json(chat: Stage, stream: bool, written: str) -> None:
    chat.model.play(function_calls(call("echo", written)), text("Sorry."), text("Well."))

    first = check(await chat.ask(input="Echo", tools=[chat.mcp_tool()], stream=stream))
    second = check(await chat.ask(input="Go on", previous_response_id=first.body["id"], stream=stream))

    assert (first.text, second.text) == ("Sorry.", "Well.")
    assert first.body["output"][1]["arguments"] == (written or "{}")


async def test_custom_tool_is_called_with_free_text_and_answered_by_the_client(chat: Stage, stream: bool) -> None:
    grammar = {"type": "grammar", "syntax": "lark", "definition": 'start: "*"'}
    tool = {"type": "custom", "name": "patch", "description": "Patch.", "format": grammar}
    chat.model.play(function_calls(call("patch", {"input": "*** Begin\n+a"}, call_id="a")), text("Done."))

    first = check(
        await chat.ask(input="Go", tools=[tool], stream=stream, tool_choice={"type": "custom", "name": "patch"})
    )
    output = {"type": "custom_tool_call_output", "call_id": "a", "output": "patched"}
    check(await chat.ask(input=[output], previous_response_id=first.body["id"], tools=[tool], stream=stream))

    (item,) = first.body["output"]
    assert (item["type"], item["name"], item["input"]) == ("custom_tool_call", "patch", "*** Begin\n+a")
    assert chat.model.asked[0]["tool_choice"] == {"type": "function", "function": {"name": "patch"}}
    assert [asked["tools"] for asked in chat.model.asked] == [[{"type": "function", "function": PATCH_FUNCTION}]] * 2
    told = chat.model.asked[1]["messages"]
    assert [called["function"] for called in told[1]["tool_calls"]] == [
        {"name": "patch", "arguments": '{"input":"*** Begin\\n+a"}'}
    ]
    assert spoken(told[2:]) == [("tool", "patched")]


async def test_tools_in_a_namespace_are_called_and_answered_by_the_client(chat: Stage, stream: bool) -> None:
    grammar = {"type": "grammar", "syntax": "regex", "definition": "[a-z]"}
    patch = {"type": "custom", "name": "patch", "format": grammar}
    tools = [{"type": "namespace", "name": "editor", "description": "Edits.", "tools": [WEATHER, patch]}]
    calls = function_calls(
        call("editor__get_forecast", {"city": "Oslo"}, call_id="a"), call("editor__patch", {"input": "x"}, call_id="b")
    )
    chat.model.play(calls, text("Done."), text("Bye."))

    first = check(await chat.ask(input="Go", tools=tools, stream=stream))
    outputs = [
        {"type": "function_call_output", "call_id": "a", "output": "snow"},
        {"type": "custom_tool_call_output", "call_id": "b", "output": "patched"},
    ]
    second = check(await chat.ask(input=outputs, previous_response_id=first.body["id"], tools=tools, stream=stream))
    check(await chat.ask(input="Thanks", previous_response_id=second.body["id"], stream=stream))

    kinds = [(item["type"], item["namespace"], item["name"]) for item in first.body["output"]]
    assert kinds == [("function_call", "editor", "get_forecast"), ("custom_tool_call", "editor", "patch")]
    assert [tool["tools"][1]["format"] for tool in first.body["tools"]] == [grammar]
    (declared, grammatical) = [tool["function"] for tool in chat.model.asked[0]["tools"]]
    assert declared["description"] == "editor: Edits.\n\nThe forecast for a city"
    assert grammatical["description"] == "The input must follow this regex grammar:\n[a-z]"
    assert "tools" not in chat.model.asked[2]
    for told in (asked["messages"] for asked in chat.model.asked[1:]):
        names = [called["function"]["name"] for called in told[1]["tool_calls"]]
        assert names == ["editor__get_forecast", "editor__patch"]
        assert spoken(told[2:4]) == [("tool", "snow"), ("tool", "patched")]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0]["type"])
async def test_call_of_any_tool_of_the_client_is_continued_by_its_output(
    chat: Stage, stream: bool, case: tuple[Json, str, Json, Json, Json]
) -> None:
    tool, name, arguments, item, output = case
    chat.model.play(function_calls(call(name, arguments, call_id="a")), text("Done."))

    first = check(await chat.ask(input="Go", tools=[tool], stream=stream))
    answered = {**output, "call_id": "a", **({"id": "a"} if output["type"] == "local_shell_call_output" else {})}
    second = check(await chat.ask(input=[answered], previous_response_id=first.body["id"], tools=[tool], stream=stream))

    (called,) = first.body["output"]
    assert ({**called, **item, "status": "completed"}, second.text) == (called, "Done.")
    assert [each["function"]["name"] for each in chat.model.asked[0]["tools"]] == [name]
    told = chat.model.asked[1]["messages"]
    assert [message["role"] for message in told] == ["user", "assistant", "tool"]
    assert [(each["id"], each["function"]["name"]) for each in told[1]["tool_calls"]] == [("a", name)]


async def test_recorded_request_of_codex_is_answered_and_continued(own_settings: Stage) -> None:
    wait_agent = function_calls(call("multi_agent_v1__wait_agent", {"targets": []}, call_id="a"))
    own_settings.model.play(wait_agent, text("Done."))
    request = json.loads(CODEX.read_text())["body"]

    answer = check(await own_settings.post(request))
    output = {"type": "function_call_output", "call_id": "a", "output": "none"}
    going_on = [*request["input"], *answer.body["output"], output]
    check(await own_settings.post({**request, "input": going_on}))

    assert answer.headers["attache-omitted-tools"] == "web_search"
    assert [(item["namespace"], item["name"]) for item in answer.body["output"]] == [("multi_agent_v1", "wait_agent")]
    (asked, continued) = own_settings.model.asked
    assert [message["role"] for message in asked["messages"]] == ["system", "user", "user"]
    assert all(isinstance(message["content"], str) for message in asked["messages"])
    assert len(asked["tools"]) == 7 + 5
    assert continued["messages"][:3] == asked["messages"]
    (called, told) = continued["messages"][3:]
    assert [each["function"]["name"] for each in called["tool_calls"]] == ["multi_agent_v1__wait_agent"]
    assert told == {"role": "tool", "tool_call_id": "a", "content": "none"}


async def test_what_is_no_function_is_refused_in_a_chain_without_tool_dispatch(
    without_tool_dispatch: Stage, stream: bool
) -> None:
    custom = {"type": "custom_tool_call", "call_id": "a", "name": "patch", "input": "x"}
    output = {"type": "custom_tool_call_output", "call_id": "a", "output": "ok"}
    for body, param, named in (
        ({"input": "Hi", "tools": [WEATHER, {"type": "custom", "name": "patch"}]}, "tools[1].type", "'custom'"),
        ({"input": [custom, output]}, "input", "'custom_tool_call'"),
    ):
        answer = await without_tool_dispatch.ask(**body, stream=stream)

        error = answer.body["error"]
        assert (answer.status, error["code"], error["param"]) == (400, "unsupported_value", param)
        assert named in error["message"]
        assert "A chain with 'tool_dispatch' serves" in error["message"]
    assert without_tool_dispatch.model.asked == []


async def test_function_is_called_in_a_chain_without_tool_dispatch(without_tool_dispatch: Stage, stream: bool) -> None:
    without_tool_dispatch.model.play(function_calls(call("get_forecast", {"city": "Oslo"})))

    answer = check(await without_tool_dispatch.ask(input="Weather?", tools=[WEATHER], stream=stream))

    assert [(item["type"], item["name"]) for item in answer.body["output"]] == [("function_call", "get_forecast")]


async def test_structured_output_is_asked_for_as_a_response_format(chat: Stage, stream: bool) -> None:
    chat.model.play(text('{"city": "Oslo"}'))
    form = {"type": "json_schema", "name": "place", "schema": SCHEMA, "strict": True}

    answer = check(await chat.ask(input="Where?", text={"format": form}, stream=stream))

    assert answer.text == '{"city": "Oslo"}'
    assert chat.model.asked[0]["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "place", "schema": SCHEMA, "strict": True},
    }


@pytest.mark.parametrize("reason", ["max_output_tokens", "content_filter"])
async def test_answer_that_was_cut_short_is_incomplete(chat: Stage, stream: bool, reason: str) -> None:
    chat.model.play(incomplete(reason, text("This goes on and")))

    answer = check(await chat.ask(input="Hi", stream=stream))

    assert (answer.body["status"], answer.body["incomplete_details"]) == ("incomplete", {"reason": reason})
    assert answer.text == "This goes on and"


async def test_what_the_server_cannot_be_asked_is_refused_and_not_sent(chat: Stage, stream: bool) -> None:
    image = {"type": "input_image", "file_id": "file_1"}
    for body, param in (
        ({"input": "Hi", "n": 2}, "n"),
        ({"input": [{"role": "user", "content": [image]}]}, "input"),
    ):
        answer = await chat.ask(**body, stream=stream)

        assert (answer.status, answer.body["error"]["param"]) == (400, param)
        assert "Chat Completions" in answer.body["error"]["message"]
    assert chat.model.asked == []


async def test_truncation_is_the_gateways_business_where_a_server_has_no_word_for_it(chat: Stage, stream: bool) -> None:
    chat.model.play(text("Yes."))

    check(await chat.ask(input="Hi", truncation="auto", stream=stream))

    assert "truncation" not in chat.model.asked[0]


async def test_too_many_requests_is_429_with_retry_after(chat: Stage, stream: bool) -> None:
    chat.model.play(http_error(429, headers={"retry-after": "3"}, message="Slow down."))

    answer = await chat.ask(input="Hi", stream=stream)

    assert (answer.status, answer.headers["retry-after"]) == (429, "3")
    assert answer.body["error"]["message"] == "Slow down."


async def test_refused_parameter_is_named_as_the_client_knows_it(chat: Stage, stream: bool) -> None:
    refusal = {"error": {"message": "Too large.", "type": "BadRequestError", "param": "max_tokens", "code": 400}}
    chat.model.play(http_error(400, refusal))

    answer = await chat.ask(input="Hi", max_output_tokens=10, stream=stream)

    assert (answer.status, answer.body["error"]["param"]) == (400, "max_output_tokens")


@pytest.mark.parametrize("reply", [garbage(), dies_after(0), stream_error("No.", http_status=500)], ids=str)
async def test_failure_before_anything_was_said_is_an_http_error(chat: Stage, reply: Reply) -> None:
    chat.model.play(reply)

    answer = await chat.ask(input="Hi")

    assert (answer.status, answer.body["error"]["type"]) == (502, "server_error")


async def test_server_that_dies_midstream_is_a_failed_response(chat: Stage) -> None:
    chat.model.play(stalls_after(5, text("This will never be said whole.")))
    server = chat.model.server
    assert server is not None

    async with chat.client.stream(
        "POST", "/v1/responses", json={"model": "m", "input": "Hi", "stream": True}
    ) as response:
        chunks = response.aiter_bytes()
        begun = await anext(chunks)
        await server.disconnect_all()
        rest = [chunk async for chunk in chunks]

    events = decode_events(begun + b"".join(rest))
    check_stream([Event(event["type"], event) for event in events])
    await check_failed(chat, events[-1]["response"])


@pytest.mark.parametrize(
    "reply", [ends_without_terminal(), stream_error("No.", reply=text("I was"))], ids=["ends", "error"]
)
async def test_stream_that_does_not_come_to_its_end_is_a_failed_response(chat: Stage, reply: Reply) -> None:
    chat.model.play(reply)

    await check_failed(chat, check(await chat.ask(input="Hi", stream=True)).body)


async def check_failed(chat: Stage, response: Json) -> None:
    assert response["status"] == "failed"
    assert [item["status"] for item in response["output"]] == ["incomplete"]
    assert (await chat.get(f"/v1/responses/{response['id']}")).json() == response


async def test_filter_asks_as_its_own_settings_say(own_settings: Stage) -> None:
    own_settings.model.play(reasoning_then("They greet me.", "Hello."), text("Yes."))
    first = check(await own_settings.ask(input="Hi"))
    more: list[Json] = [{"role": "developer", "content": "No jokes."}, {"role": "user", "content": "Sure?"}]

    going_on = {"previous_response_id": first.body["id"], "instructions": "Be brief.", "max_output_tokens": 9}
    check(await own_settings.ask(input=more, stream=True, **going_on))

    request = own_settings.model.requests[1]
    assert (request.path, request.body["max_completion_tokens"]) == ("/v1/chat/completions", 9)
    assert "max_tokens" not in request.body
    assert request.body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "No jokes."},
        {"role": "user", "content": "Sure?"},
    ]
