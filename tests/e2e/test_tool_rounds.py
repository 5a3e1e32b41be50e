"""Rounds with many calls, through the whole gateway: whatever becomes of each, they are one response, in order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

from attache_core.json_codec import Json, decode
from attache_core.testing.mcp_server import Fault
from attache_core.testing.model_script import call, function_calls, says, text
from attache_core.testing.search_server import SearchServer, running_search_server, web_json
from e2e.stage import Answered, Stage, check, open_stage
from e2e.test_turns import WEATHER

CALL_TIMEOUT_S = 3
SETTINGS = f"""
chains:
  responses:
    - filter: validate
    - filter: persist
    - filter: rehydrate
    - filter: tool_dispatch
      call_timeout_s: {CALL_TIMEOUT_S}
      max_identical_calls: 2
      max_calls: 20
      loop:
        - filter: upstream_round
"""
TIMED_OUT = f"The tool call failed: The tool did not answer within {CALL_TIMEOUT_S} s."
SEARCHED = {"action": {"type": "search", "queries": ["tea", "hot"]}}


@dataclass(frozen=True)
class Hall:
    stage: Stage
    web: SearchServer


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_hall(placement: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Hall]:
    found = web_json({"results": [{"url": "https://h.test/tea", "title": "Tea", "content": "It is hot."}]})
    async with running_search_server({"/search": found}) as web:
        yaml = f"{SETTINGS}\nweb_search: {{provider: searxng, url: '{web.url}'}}\n"
        async with open_stage(placement, tmp_path_factory.mktemp(placement), gateway_yaml=yaml) as stage:
            stage.model.play(text("Hello."))
            # The first listing loads the SDK, which is not what these tests wait for.
            check(await stage.ask(input="Hi", tools=[stage.mcp_tool()]))
            yield Hall(stage, web)


@pytest.fixture
def hall(shared_hall: Hall) -> Hall:
    """A gateway with a search provider and small bounds, shared by the tests of one placement."""
    shared_hall.stage.model.play()
    shared_hall.stage.mcp.release.clear()
    shared_hall.web.requests.clear()
    return shared_hall


def repr_of(said: str) -> str:
    return ascii(said)[:20]


def told(stage: Stage, round_: int = 1) -> list[Any]:
    """What the model was told of calls, their outputs in its order."""
    return [item["output"] for item in stage.model.asked[round_]["input"] if item["type"] == "function_call_output"]


def shown(answer: Answered, name: str) -> list[Any]:
    """One field of the MCP calls that the client sees."""
    return [item[name] for item in answer.body["output"] if item["type"] == "mcp_call"]


async def test_five_calls_of_which_one_hangs_and_one_fails_are_one_response_in_the_order_of_the_calls(
    hall: Hall, stream: bool
) -> None:
    stage, before = hall.stage, len(hall.stage.mcp.calls)
    stage.model.play(
        function_calls(
            call("hang", {}),
            call("slow", {"text": "two"}),
            call("fail", {"message": "no"}),
            call("slow", {"text": "four"}),
            call("echo", {"text": "five"}),
        ),
        text("Done."),
    )

    async with asyncio.timeout(4 * CALL_TIMEOUT_S), asyncio.TaskGroup() as tasks:
        asked = stage.ask(input="Go", tools=[stage.mcp_tool()], stream=stream)
        asking = tasks.create_task(asked)
        # The calls that wait are let go only when all five have come: so all of them run at once.
        await stage.mcp.until(lambda seen: len(seen.calls) == before + 5)
        stage.mcp.release.set()
    answer = check(asking.result())

    assert answer.item_types == ["mcp_list_tools", *["mcp_call"] * 5, "message"]
    assert shown(answer, "name") == ["hang", "slow", "fail", "slow", "echo"]
    assert shown(answer, "output") == [None, "two", None, "four", "five"]
    assert shown(answer, "status") == ["failed", "completed", "failed", "completed", "completed"]
    assert told(stage) == [TIMED_OUT, "two", "no", "four", "five"]
    assert (answer.body["status"], answer.types.count("response.created")) == ("completed", int(stream))
    assert (await stage.get(f"/v1/responses/{answer.body['id']}")).json() == answer.body


async def test_calls_of_every_kind_in_one_round_keep_their_order_and_the_client_answers_its_own(
    hall: Hall, stream: bool
) -> None:
    stage = hall.stage
    stage.model.play(
        says(
            "First.",
            call("web_search", SEARCHED),
            "Then.",
            call("get_forecast", {"city": "Oslo"}, call_id="call_of_the_client"),
            call("hang", {}),
            call("fail", {"message": "no"}),
            "Last.",
            call("echo", {"text": "hi"}),
        ),
        text("All done."),
    )
    tools = [{"type": "web_search_preview"}, stage.mcp_tool(), WEATHER]

    first = check(await stage.ask(input="Go", tools=tools, stream=stream))
    (called,) = [item for item in first.body["output"] if item["type"] == "function_call"]
    output = {"type": "function_call_output", "call_id": called["call_id"], "output": "snow"}
    second = check(await stage.ask(input=[output], previous_response_id=first.body["id"], tools=tools, stream=stream))

    assert first.item_types == [
        "mcp_list_tools",
        *("message", "web_search_call", "message", "function_call", "mcp_call", "mcp_call", "message", "mcp_call"),
    ]
    assert first.body["tool_usage"]["web_search"] == {"num_requests": 2}
    assert (second.text, second.body["tool_usage"]["web_search"]) == ("All done.", {"num_requests": 0})
    assert len(hall.web.requests) == 2
    heard = stage.model.asked[1]["input"]
    assert told(stage)[1:] == [TIMED_OUT, "no", "hi", "snow"]
    ids = [item["call_id"] for item in heard if item["type"] == "function_call"]
    assert sorted(ids) == sorted(item["call_id"] for item in heard if item["type"] == "function_call_output")
    assert len(set(ids)) == len(ids) == 5


async def test_round_of_more_calls_than_are_allowed_runs_these_and_answers_each(hall: Hall, stream: bool) -> None:
    stage, before = hall.stage, len(hall.stage.mcp.calls)
    stage.model.play(function_calls(*(call("echo", {"text": f"{number}"}) for number in range(300))), text("Done."))

    answer = check(await stage.ask(input="Go", tools=[stage.mcp_tool()], stream=stream))

    assert shown(answer, "output") == [*(f"{number}" for number in range(20)), *[None] * 280]
    assert len(stage.mcp.calls) == before + 20
    assert len(told(stage)) == 300
    assert told(stage)[-1].startswith("The tool call failed: No more tool calls are allowed in this response")


async def test_same_call_in_round_after_round_is_run_no_more_and_the_turn_keeps_its_work(
    hall: Hall, stream: bool
) -> None:
    stage, before = hall.stage, len(hall.stage.mcp.calls)
    stage.model.play(
        function_calls(call("echo", {"text": "a"})),
        function_calls(call("echo", '{ "text" : "a" }')),
        function_calls(call("echo", {"text": "a"}), call("echo", {"text": "b"})),
        text("Done."),
    )

    answer = check(await stage.ask(input="Go", tools=[stage.mcp_tool()], stream=stream))

    assert shown(answer, "output") == ["a", "a", None, "b"]
    assert [arguments["text"] for _, arguments in stage.mcp.calls[before:]] == ["a", "a", "b"]
    assert "This call was made 2 times in this response" in told(stage, 3)[2]


@pytest.mark.parametrize("said", ["a\x00b", "\u202e\ufeff\u0130", "x" * (1024 * 1024)], ids=repr_of)
async def test_result_of_any_text_is_told_shown_and_stored_alike(hall: Hall, said: str, stream: bool) -> None:
    stage = hall.stage
    stage.mcp.faults_once["tools/call"] = Fault(
        result={"resultType": "complete", "content": [{"type": "text", "text": said}]}
    )
    stage.model.play(function_calls(call("echo", {"text": "a"})), text("Done."))

    answer = check(await stage.ask(input="Go", tools=[stage.mcp_tool()], stream=stream))

    assert [told(stage), shown(answer, "output")] == [[said], [said]]
    stored = decode((await stage.get(f"/v1/responses/{answer.body['id']}")).content)
    assert stored == answer.body


@pytest.mark.parametrize("kind", ["file_search", "code_interpreter", "image_generation", "computer"])
async def test_tool_that_nothing_here_runs_is_refused_by_name(hall: Hall, kind: str, stream: bool) -> None:
    answer = await hall.stage.ask(input="Go", tools=[{"type": "web_search"}, {"type": kind}], stream=stream)
    error: Json = answer.body["error"]
    assert (answer.status, error["param"], error["code"]) == (400, "tools[1].type", "invalid_value")
    assert error["message"].startswith(f"Invalid value: '{kind}'. Supported values are: ")
    assert "web_search" in error["message"].partition("Supported")[2]
    assert hall.stage.model.asked == []


async def test_recency_location_and_context_size_reach_the_provider_as_far_as_it_knows_them(
    hall: Hall, stream: bool
) -> None:
    stage = hall.stage
    queries = [f"tea {number}" for number in range(6)]
    stage.model.play(
        function_calls(
            call("web_search", {"action": {"type": "search", "queries": queries[:5], "recency": "week"}}),
            call("web_search", {"action": {"type": "search", "queries": queries}}),
        ),
        text("Done."),
    )
    tool = {"type": "web_search", "search_context_size": "low", "user_location": {"type": "approximate", "city": "Ulm"}}

    answer = check(await stage.ask(input="Go", tools=[tool], stream=stream))

    assert [item["status"] for item in answer.body["output"][:2]] == ["completed", "failed"]
    assert answer.body["tool_usage"]["web_search"] == {"num_requests": 5}
    assert told(stage)[1] == "The tool call failed: A search has at most 5 queries."
    assert sorted(asked.path for asked in hall.web.requests) == [
        f"/search?q=tea+{number}&format=json&time_range=week" for number in range(5)
    ]
    assert decode(stage.model.asked[1]["input"][1]["arguments"])["action"]["queries"] == queries[:5]
