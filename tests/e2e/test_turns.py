"""Turns that succeed: what the client gets, what the model server was asked, what is stored."""

from __future__ import annotations

from typing import Any

from attache_core.testing.model_script import call, function_calls, incomplete, reasoning_then, says, text, thinks
from e2e.stage import Stage, check

WEATHER = {
    "type": "function",
    "name": "get_forecast",
    "description": "The forecast for a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


async def test_text_turn_is_answered_stored_and_read_back_as_sent(state_stage: Stage, stream: bool) -> None:
    state_stage.model.play(text("Hello there."))

    answer = check(await state_stage.ask(input="Hi", stream=stream, metadata={"trace": "1"}))

    assert (answer.text, answer.body["status"]) == ("Hello there.", "completed")
    assert answer.body["metadata"] == {"trace": "1"}
    assert answer.body["usage"]["total_tokens"] > 0
    stored = await state_stage.get(f"/v1/responses/{answer.body['id']}")
    assert (stored.status_code, stored.json()) == (200, answer.body)


async def test_model_server_is_asked_without_any_state_of_ours(stage: Stage, stream: bool) -> None:
    stage.model.play(text("Yes."))

    await stage.ask(input="Hi", stream=stream, seed=7, chat_template_kwargs={"enable_thinking": False}, temperature=0.5)

    (asked,) = stage.model.asked
    assert (asked["seed"], asked["chat_template_kwargs"], asked["temperature"]) == (7, {"enable_thinking": False}, 0.5)
    assert asked["input"] == "Hi"
    assert asked["store"] is False
    assert not set(asked) & {"previous_response_id", "conversation", "parallel_tool_calls", "tools"}
    headers = {name.lower(): value for name, value in stage.model.requests[0].headers.items()}
    assert not [name for name in headers if name.startswith("x-attache")]
    assert headers["accept-encoding"] == "identity"


async def test_turn_that_continues_another_sends_the_whole_conversation(state_stage: Stage, stream: bool) -> None:
    state_stage.model.play(text("Nice to meet you, Ada."), text("Your name is Ada."), text("As I said, Ada."))

    first = check(await state_stage.ask(input="I am Ada.", instructions="Be brief.", stream=stream))
    second = check(await state_stage.ask(input="Who am I?", previous_response_id=first.body["id"], stream=stream))
    third = check(await state_stage.ask(input="Again?", previous_response_id=second.body["id"], stream=stream))

    assert second.body["previous_response_id"] == first.body["id"]
    assert [(item["role"], item["content"][0]["text"]) for item in state_stage.model.asked[2]["input"]] == [
        ("user", "I am Ada."),
        ("assistant", "Nice to meet you, Ada."),
        ("user", "Who am I?"),
        ("assistant", "Your name is Ada."),
        ("user", "Again?"),
    ]
    assert [asked.get("instructions") for asked in state_stage.model.asked] == ["Be brief.", None, None]
    assert third.body["instructions"] is None


async def test_two_turns_may_continue_the_same_one(state_stage: Stage, stream: bool) -> None:
    state_stage.model.play(text("Root."), text("Left."), text("Right."))
    root = await state_stage.ask(input="root", stream=stream)

    for name in ("left", "right"):
        await state_stage.ask(input=name, previous_response_id=root.body["id"], stream=stream)

    heard = [[item["content"][0]["text"] for item in asked["input"]] for asked in state_stage.model.asked[1:]]
    assert heard == [["root", "Root.", "left"], ["root", "Root.", "right"]]


async def test_turn_that_is_not_stored_leaves_nothing_and_may_still_continue(state_stage: Stage, stream: bool) -> None:
    state_stage.model.play(text("Stored."), text("Not stored."))
    first = await state_stage.ask(input="one", stream=stream)

    second = check(
        await state_stage.ask(input="two", previous_response_id=first.body["id"], store=False, stream=stream)
    )

    assert second.body["store"] is False
    assert len(state_stage.model.asked[1]["input"]) == 3
    assert (await state_stage.get(f"/v1/responses/{second.body['id']}")).status_code == 404
    refused = await state_stage.ask(input="three", previous_response_id=second.body["id"], stream=stream)
    assert (refused.status, refused.body["error"]["code"]) == (400, "previous_response_not_found")


async def test_reasoning_is_an_item_before_the_message(stage: Stage, stream: bool) -> None:
    stage.model.play(reasoning_then("They greet me.", "Hello."))

    answer = check(await stage.ask(input="Hi", stream=stream))

    assert answer.item_types == ["reasoning", "message"]
    assert answer.body["output"][0]["content"] == [{"type": "reasoning_text", "text": "They greet me."}]


async def test_function_call_is_answered_by_the_client_in_a_continuation(state_stage: Stage, stream: bool) -> None:
    state_stage.model.play(function_calls(call("get_forecast", {"city": "Oslo"})), text("Snow in Oslo."))

    first = check(await state_stage.ask(input="Weather in Oslo?", tools=[WEATHER], stream=stream))
    (called,) = first.body["output"]
    output = {"type": "function_call_output", "call_id": called["call_id"], "output": "snow"}
    second = check(
        await state_stage.ask(input=[output], previous_response_id=first.body["id"], tools=[WEATHER], stream=stream)
    )

    assert (called["type"], called["name"], called["status"]) == ("function_call", "get_forecast", "completed")
    assert second.text == "Snow in Oslo."
    sent = state_stage.model.asked[1]["input"]
    assert [item["type"] for item in sent] == ["message", "function_call", "function_call_output"]
    assert sent[1]["call_id"] == sent[2]["call_id"] == called["call_id"]


async def test_whole_output_may_be_sent_back_as_input_with_store_left_on(stage: Stage, stream: bool) -> None:
    stage.model.play(function_calls(call("get_forecast", {"city": "Oslo"})), text("Snow."), text("Still snow."))
    conversation: list[Any] = [{"role": "user", "content": "Weather in Oslo?"}]

    first = check(await stage.ask(input=conversation, tools=[WEATHER], stream=stream))
    call_id = first.body["output"][0]["call_id"]
    conversation += first.body["output"]
    conversation.append({"type": "function_call_output", "call_id": call_id, "output": "snow"})
    second = check(await stage.ask(input=conversation, tools=[WEATHER], stream=stream))
    conversation += second.body["output"]
    conversation.append({"role": "user", "content": "And now?"})
    third = check(await stage.ask(input=conversation, tools=[WEATHER], stream=stream))

    assert third.text == "Still snow."
    assert [item.get("type", "message") for item in stage.model.asked[2]["input"]] == [
        "message",
        "function_call",
        "function_call_output",
        "message",
        "message",
    ]


async def test_mcp_tool_is_listed_called_and_its_result_told_to_the_model(stage: Stage, stream: bool) -> None:
    stage.model.play(function_calls(call("get_weather", {"city": "Oslo"})), text("It is snowing."))

    answer = check(await stage.ask(input="Weather in Oslo?", tools=[stage.mcp_tool()], stream=stream))

    assert answer.item_types == ["mcp_list_tools", "mcp_call", "message"]
    listed, called, _ = answer.body["output"]
    assert "get_weather" in [tool["name"] for tool in listed["tools"]]
    assert (called["name"], called["status"], called["error"]) == ("get_weather", "completed", None)
    assert "Oslo" in called["output"]
    first, second = stage.model.asked
    assert {tool["type"] for tool in first["tools"]} == {"function"}
    assert [item["type"] for item in second["input"]] == ["message", "function_call", "function_call_output"]
    assert second["input"][2]["output"] == called["output"]


async def test_two_round_turn_asks_the_upstream_twice_the_second_time_through_the_loop_listener(
    stage: Stage, stream: bool
) -> None:
    stage.model.play(text("Warm."), function_calls(call("get_weather", {"city": "Oslo"})), text("Snow."))
    await stage.ask(input="the list of tools is known from here on", tools=[stage.mcp_tool()])
    before = await upstream_and_loop_requests(stage)

    check(await stage.ask(input="Weather in Oslo?", tools=[stage.mcp_tool()], stream=stream))

    upstream, loop = (now - then for now, then in zip(await upstream_and_loop_requests(stage), before, strict=True))
    assert upstream == 2
    # The first round of a streamed turn takes the loop listener too: only there does its death reach the filters.
    assert loop == (2 if stream else 1)


async def upstream_and_loop_requests(stage: Stage) -> tuple[int, int]:
    upstream = await stage.gateway.admin.stats(r"^cluster\.upstream.*\.upstream_rq_total$")
    loop = await stage.gateway.admin.stats(r"^http\.loop.*\.downstream_rq_total$")
    return sum(upstream.values()), sum(loop.values())


async def test_listed_tools_are_not_listed_again_in_the_next_turn(stage: Stage, stream: bool) -> None:
    stage.model.play(text("Hi."), text("Bye."))
    first = check(await stage.ask(input="hi", tools=[stage.mcp_tool()], stream=stream))

    second = check(
        await stage.ask(input="bye", previous_response_id=first.body["id"], tools=[stage.mcp_tool()], stream=stream)
    )

    assert (first.item_types, second.item_types) == (["mcp_list_tools", "message"], ["message"])


async def test_mcp_call_of_an_earlier_turn_is_told_to_the_model_as_call_and_output(
    state_stage: Stage, stream: bool
) -> None:
    state_stage.model.play(function_calls(call("get_weather", {"city": "Oslo"})), text("Snow."), text("I said snow."))
    first = await state_stage.ask(input="Weather?", tools=[state_stage.mcp_tool()], stream=stream)

    await state_stage.ask(input="Again?", previous_response_id=first.body["id"], stream=stream)

    told = state_stage.model.asked[2]["input"]
    assert [item["type"] for item in told] == [
        "message",
        "function_call",
        "function_call_output",
        "message",
        "message",
    ]
    assert told[1:3] == state_stage.model.asked[1]["input"][1:3]


async def test_several_calls_of_a_round_have_results_in_the_order_of_the_calls(stage: Stage, stream: bool) -> None:
    stage.model.play(
        function_calls(call("echo", {"text": "one"}), call("echo", {"text": "two"}), call("echo", {"text": "three"})),
        text("Done."),
    )

    answer = check(await stage.ask(input="Echo!", tools=[stage.mcp_tool()], stream=stream))

    outputs = [item["output"] for item in answer.body["output"] if item["type"] == "mcp_call"]
    assert outputs == ["one", "two", "three"]


async def test_mixed_round_runs_gateway_calls_and_returns_the_clients(stage: Stage, stream: bool) -> None:
    stage.model.play(
        says("Let me see.", call("echo", {"text": "hi"}), call("get_forecast", {"city": "Oslo"})), text("Both done.")
    )
    tools = [stage.mcp_tool(), WEATHER]

    first = check(await stage.ask(input="Go", tools=tools, stream=stream))
    called = first.body["output"][-1]
    output = {"type": "function_call_output", "call_id": called["call_id"], "output": "snow"}
    second = check(await stage.ask(input=[output], previous_response_id=first.body["id"], tools=tools, stream=stream))

    assert first.item_types == ["mcp_list_tools", "message", "mcp_call", "function_call"]
    assert second.text == "Both done."
    told = [item["type"] for item in stage.model.asked[1]["input"]]
    assert told == [
        "message",
        "message",
        "function_call",
        "function_call_output",
        "function_call",
        "function_call_output",
    ]


async def test_forced_tool_choice_is_auto_after_the_call_was_made(stage: Stage, stream: bool) -> None:
    stage.model.play(function_calls(call("echo", {"text": "hi"})), text("Done."))

    answer = check(await stage.ask(input="Go", tools=[stage.mcp_tool()], tool_choice="required", stream=stream))

    assert [asked["tool_choice"] for asked in stage.model.asked] == ["required", "auto"]
    assert answer.body["tool_choice"] == "required"


async def test_usage_is_summed_over_rounds(stage: Stage, stream: bool) -> None:
    stage.model.play(function_calls(call("echo", {"text": "hi"})), text("Done."), text("Done."))
    one = await stage.ask(input="Go", tools=[stage.mcp_tool()], stream=stream)
    alone = await stage.ask(input="Go", stream=stream)

    assert one.body["usage"]["total_tokens"] > alone.body["usage"]["total_tokens"]
    assert one.body["usage"]["total_tokens"] == one.body["usage"]["input_tokens"] + one.body["usage"]["output_tokens"]


async def test_model_that_never_stops_calling_ends_incomplete_after_ten_rounds(stage: Stage, stream: bool) -> None:
    stage.model.set(lambda _: function_calls(call("echo", {"text": "again"})))

    answer = check(await stage.ask(input="Go", tools=[stage.mcp_tool()], stream=stream))

    assert len(stage.model.asked) == 10
    assert (answer.body["status"], answer.body["incomplete_details"]) == ("incomplete", {"reason": "max_messages"})
    assert answer.item_types == ["mcp_list_tools", *["mcp_call"] * 10]


async def test_incomplete_answer_stays_incomplete_and_may_be_continued(state_stage: Stage, stream: bool) -> None:
    state_stage.model.play(incomplete("max_output_tokens", text("Once upon a")), text("time."))

    first = check(await state_stage.ask(input="Tell", max_output_tokens=16, stream=stream))
    second = check(await state_stage.ask(input="Go on", previous_response_id=first.body["id"], stream=stream))

    assert (first.body["status"], first.body["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    assert first.body["completed_at"] is None
    assert second.text == "time."


async def test_secrets_of_an_mcp_tool_are_neither_echoed_nor_stored(stage: Stage, stream: bool) -> None:
    stage.model.play(text("Hi."))
    tool = stage.mcp_tool(authorization="canary-4711", headers={"x-key": "canary-4712"})

    answer = check(await stage.ask(input="hi", tools=[tool], stream=stream))

    assert "canary" not in str(answer.body) + str(answer.events)
    for file in stage.storage.parent.glob(stage.storage.name + "*"):
        assert b"canary" not in file.read_bytes()
    assert "canary" not in str(stage.model.asked)


async def test_instructions_reasoning_and_thoughts_survive_unusual_text(state_stage: Stage, stream: bool) -> None:
    odd = 'line\u2028para\u2029 nul\x00 "quotes" \U0001f600 data: [DONE]\n\n'
    state_stage.model.play(says(thinks(odd), odd), text("ok"))

    first = check(await state_stage.ask(input=odd, stream=stream))
    await state_stage.ask(input="next", previous_response_id=first.body["id"], stream=stream)

    assert first.text == odd
    told = state_stage.model.asked[1]["input"]
    assert told[0]["content"][0]["text"] == odd
    assert told[2]["content"][0]["text"] == odd
    assert (await state_stage.get(f"/v1/responses/{first.body['id']}")).json() == first.body
