"""Agents of the `openai-agents` SDK run on the gateway: tools, handoffs, chained turns, typed answers, streams."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from agents import (
    Agent,
    GuardrailFunctionOutput,
    HostedMCPTool,
    InputGuardrailTripwireTriggered,
    MaxTurnsExceeded,
    ModelSettings,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    SQLiteSession,
    function_tool,
    input_guardrail,
)

from attache_core.json_codec import Json
from attache_core.testing.model_script import call, function_calls, reasoning_then, says, text, thinks
from e2e.sdk_client import SNOW, Forecast, open_sdk
from e2e.stage import Stage

QUIET = RunConfig(tracing_disabled=True)
"""Traces would go to OpenAI."""


@pytest_asyncio.fixture(loop_scope="session")
async def model(stage: Stage) -> AsyncIterator[OpenAIResponsesModel]:
    async with open_sdk(stage) as client:
        yield OpenAIResponsesModel("attache-demo", client)


@function_tool
def get_forecast(city: str) -> str:
    """The forecast for a city."""
    return f"Snow in {city}."


@function_tool(failure_error_function=lambda _, error: f"It failed: {error}.")
def get_nothing() -> str:
    """A tool that fails."""
    raise LookupError("no such weather station")


def types_of(asked: Json) -> list[str]:
    """The types of the input items that the model server was asked with."""
    return [item.get("type", "message") for item in asked["input"]]


async def test_agent_calls_its_function_tools_and_answers(stage: Stage, model: OpenAIResponsesModel) -> None:
    stage.model.play(
        function_calls(call("get_forecast", {"city": "Oslo"}), call("get_forecast", {"city": "Rome"})), text("Snow.")
    )
    agent = Agent("weather", instructions="Be brief.", model=model, tools=[get_forecast])

    result = await Runner.run(agent, "Weather in Oslo and Rome?", run_config=QUIET)

    assert result.final_output == "Snow."
    first, second = stage.model.asked
    assert (first["instructions"], [tool["name"] for tool in first["tools"]]) == ("Be brief.", ["get_forecast"])
    assert types_of(second) == ["message", "function_call", "function_call", *["function_call_output"] * 2]
    assert [item["output"] for item in second["input"][3:]] == ["Snow in Oslo.", "Snow in Rome."]


@pytest.mark.parametrize("chained", [False, True], ids=["history sent", "previous response"])
async def test_agent_sees_the_whole_turn_whoever_keeps_it(
    stage: Stage, model: OpenAIResponsesModel, chained: bool
) -> None:
    stage.model.play(
        says(thinks("I need the weather."), call("get_forecast", {"city": "Oslo"})), text("Snow."), text("Oslo.")
    )
    agent = Agent("weather", model=model, tools=[get_forecast])

    first = await Runner.run(agent, "Weather in Oslo?", run_config=QUIET, auto_previous_response_id=chained)
    again: Any = "Where?" if chained else [*first.to_input_list(), {"role": "user", "content": "Where?"}]
    second = await Runner.run(
        agent, again, run_config=QUIET, previous_response_id=first.last_response_id if chained else None
    )

    assert second.final_output == "Oslo."
    assert types_of(stage.model.asked[2]) == [
        "message",
        "reasoning",
        "function_call",
        "function_call_output",
        "message",
        "message",
    ]


async def test_session_of_the_sdk_is_replayed(stage: Stage, model: OpenAIResponsesModel) -> None:
    stage.model.play(text("Hello, Ada."), text("Ada."))
    agent = Agent("friend", model=model)
    session = SQLiteSession("ada")

    try:
        await Runner.run(agent, "I am Ada.", session=session, run_config=QUIET)
        second = await Runner.run(agent, "Who am I?", session=session, run_config=QUIET)
    finally:
        session.close()

    assert second.final_output == "Ada."
    assert types_of(stage.model.asked[1]) == ["message"] * 3


async def test_agent_hands_over_to_another(stage: Stage, model: OpenAIResponsesModel) -> None:
    stage.model.play(function_calls(call("transfer_to_poet", {})), text("Snow falls."))
    poet = Agent("poet", instructions="Rhyme.", model=model)
    clerk = Agent("clerk", instructions="Hand over.", model=model, handoffs=[poet])

    result = await Runner.run(clerk, "A poem.", run_config=QUIET)

    assert (result.final_output, result.last_agent.name) == ("Snow falls.", "poet")
    assert [asked["instructions"] for asked in stage.model.asked] == ["Hand over.", "Rhyme."]
    assert types_of(stage.model.asked[1]) == ["message", "function_call", "function_call_output"]


async def test_agent_with_an_output_type_gives_a_value_of_it(stage: Stage, model: OpenAIResponsesModel) -> None:
    stage.model.play(text(SNOW.model_dump_json()))
    agent = Agent("weather", model=model, output_type=Forecast)

    result = await Runner.run(agent, "Weather in Oslo?", run_config=QUIET)

    assert result.final_output == SNOW
    assert stage.model.asked[0]["text"]["format"]["type"] == "json_schema"


async def test_streamed_run_tells_deltas_and_items(stage: Stage, model: OpenAIResponsesModel) -> None:
    stage.model.play(
        says(thinks("Look."), call("get_forecast", {"city": "Oslo"})), reasoning_then("Snow, then.", "It snows.")
    )
    agent = Agent("weather", model=model, tools=[get_forecast])

    result = Runner.run_streamed(agent, "Weather in Oslo?", run_config=QUIET)
    events = [event async for event in result.stream_events()]

    deltas = [
        event.data.delta
        for event in events
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta"
    ]
    assert "".join(deltas) == result.final_output == "It snows."
    assert [event.name for event in events if event.type == "run_item_stream_event"] == [
        "reasoning_item_created",
        "tool_called",
        "tool_output",
        "reasoning_item_created",
        "message_output_created",
    ]


async def test_streamed_run_continues_from_the_previous_response(stage: Stage, model: OpenAIResponsesModel) -> None:
    stage.model.play(function_calls(call("get_forecast", {"city": "Oslo"})), text("Snow."))
    agent = Agent("weather", model=model, tools=[get_forecast])

    result = Runner.run_streamed(agent, "Weather?", run_config=QUIET, auto_previous_response_id=True)
    async for _ in result.stream_events():
        pass

    assert result.final_output == "Snow."
    assert types_of(stage.model.asked[1]) == ["message", "function_call", "function_call_output"]


async def test_hosted_mcp_tool_runs_in_the_gateway(stage: Stage, model: OpenAIResponsesModel) -> None:
    stage.model.play(function_calls(call("echo", {"text": "hi"})), text("It said hi."))
    config: Any = stage.mcp_tool()
    agent = Agent("echo", model=model, tools=[HostedMCPTool(tool_config=config)])

    result = await Runner.run(agent, "Echo hi", run_config=QUIET)

    assert result.final_output == "It said hi."
    assert [item.type for item in result.raw_responses[0].output] == ["mcp_list_tools", "mcp_call", "message"]
    assert len(result.raw_responses) == 1


async def test_error_of_a_tool_is_told_to_the_model(stage: Stage, model: OpenAIResponsesModel) -> None:
    stage.model.play(function_calls(call("get_nothing", {})), text("No weather."))
    agent = Agent("weather", model=model, tools=[get_nothing])

    result = await Runner.run(agent, "Weather?", run_config=QUIET)

    assert result.final_output == "No weather."
    assert stage.model.asked[1]["input"][-1]["output"] == "It failed: no such weather station."


async def test_forced_tool_is_forced_once(stage: Stage, model: OpenAIResponsesModel) -> None:
    stage.model.play(function_calls(call("get_forecast", {"city": "Oslo"})), text("Snow."))
    settings = ModelSettings(tool_choice="required", parallel_tool_calls=False, temperature=0.5, max_tokens=100)
    agent = Agent("weather", model=model, tools=[get_forecast], model_settings=settings)

    result = await Runner.run(agent, "Weather?", run_config=QUIET)

    assert result.final_output == "Snow."
    assert [asked.get("tool_choice") for asked in stage.model.asked] == ["required", None]
    assert [asked["parallel_tool_calls"] for asked in stage.model.asked] == [False, False]


async def test_guardrail_stops_the_run(stage: Stage, model: OpenAIResponsesModel) -> None:
    stage.model.play(text('{"city": "nowhere", "sky": "none"}'))
    judge = Agent("judge", model=model, output_type=Forecast)

    @input_guardrail(run_in_parallel=False)
    async def somewhere(_context: Any, _agent: Any, given: Any) -> GuardrailFunctionOutput:
        judged = await Runner.run(judge, given, run_config=QUIET)
        return GuardrailFunctionOutput(judged.final_output, tripwire_triggered=judged.final_output.city == "nowhere")

    agent = Agent("weather", model=model, input_guardrails=[somewhere])

    with pytest.raises(InputGuardrailTripwireTriggered):
        await Runner.run(agent, "Weather?", run_config=QUIET)

    assert len(stage.model.asked) == 1


async def test_run_that_never_ends_is_stopped_after_its_turns(stage: Stage, model: OpenAIResponsesModel) -> None:
    stage.model.set(lambda _: function_calls(call("get_forecast", {"city": "Oslo"})))
    agent = Agent("weather", model=model, tools=[get_forecast])

    with pytest.raises(MaxTurnsExceeded):
        await Runner.run(agent, "Weather?", run_config=QUIET, max_turns=3)

    assert len(stage.model.asked) == 3
