"""Recordings of tools, played again through the whole gateway in front of a model that knows functions only.

The client sends what the recorded client sent; the model makes the recorded calls; MCP tools and a search provider are
there to be called. The items and the order of their events are the recorded ones, but for what is in the tables here.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pytest
import pytest_asyncio
from mcp_types import Tool

from attache_core.json_codec import Json, decode, encode
from attache_core.testing.mcp_server import RunningMcpServer, running_mcp_server
from attache_core.testing.search_server import Answering, SearchServer, running_search_server, web_json, web_page
from core.events.recordings import CASSETTES, is_openai
from e2e.recorded_tools import GATEWAY_CALLS, cited, compared, events_by_item, recorded_turns, shape
from e2e.stage import Stage, check, open_stage

FOLDERS: Final = (
    *("function_tools", "function_tools_multi_turn", "custom_tools", "namespace_tools", "tool_search"),
    *("shell", "mcp", "web_search"),
)
RECORDINGS: Final = [
    name
    for folder in FOLDERS
    for name in sorted(f"{folder}/{path.name}" for path in (CASSETTES / folder).glob("*.yaml"))
    if is_openai(name) or "-gateway-" in name
]
"""What clients saw of tools: all that is recorded of OpenAI, and of another gateway."""

SUM: Final = "mcp/mcp-openai-reference-counter-sum-missing-argument-gpt-4o-streaming.yaml"

MODELS_OWN: Final = {("message", "phase"): "gpt-5.6 says it, the model of these tests does not"}
"""What differs in any recording, by the item's type and the place in it, and why."""

OF_THE_SUM: Final = {("mcp_call", "error"): "the gateway misses the argument itself; OpenAI asked the server"}
"""What differs in `SUM`."""

OF_ANOTHER_GATEWAY: Final = {
    ("shell_call", "environment"): "the API's; that gateway leaves it out",
    ("shell_call", "caller"): "the same",
    ("shell_call", "created_by"): "the same",
    ("message", "content[].logprobs"): "the same",
    ("web_search_call", "action.queries"): "OpenAI shows one query as `query` alone",
    ("web_search_call", "action.sources"): "OpenAI shows them with `include` only",
}
"""What differs in recordings of another gateway, where the API decides."""

CITED_AT_THE_END: Final = "response.output_text.annotation.added"
"""OpenAI sends a citation while the text goes on, we all of them together before its end."""

PAGE = "https://learn.microsoft.com/en-us/azure/foundry/openai/how-to/web-search"
COUNTER = (
    Tool(name="say_hello", description="Say hello to the client", input_schema={"type": "object", "properties": {}}),
    Tool(
        name="sum",
        description="Calculate the sum of two numbers",
        input_schema={
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        },
    ),
)


@dataclass
class Theatre:
    """A stage, an MCP server with the recorded tools, and a web.

    Attributes:
        found: what any search finds.
    """

    stage: Stage
    mcp: RunningMcpServer
    web: SearchServer
    found: list[Json]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def theatre(placement: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Theatre]:
    found: list[Json] = []
    pages: dict[str, Answering] = {
        "/res/v1/web/search": lambda _asked: web_json({"web": {"results": found}}),
        "/page": web_page("<title>Search</title><p>It is best for reading."),
    }
    async with running_search_server(pages) as web, running_mcp_server(tools=COUNTER) as mcp:
        section = f"web_search: {{provider: brave, api_key: key, url: '{web.url}', allow_private_addresses: true}}\n"
        async with open_stage(placement, tmp_path_factory.mktemp(placement), gateway_yaml=section) as stage:
            yield Theatre(stage, mcp, web, found)


@pytest.mark.parametrize("path", RECORDINGS)
async def test_recording_is_played_again_with_the_same_items_and_events(
    theatre: Theatre, stream: bool, path: str
) -> None:
    different = {
        **MODELS_OWN,
        **(OF_THE_SUM if path == SUM else {}),
        **(OF_ANOTHER_GATEWAY if "-gateway-" in path else {}),
    }
    ids: dict[str, str] = {}
    turns = recorded_turns(path, {PAGE: f"{theatre.web.url}/page"})
    theatre.found[:] = cited(turns)
    for turn in turns:
        theatre.stage.model.play(*turn.script)
        request = with_ids({**with_server(turn.request, theatre.mcp.url), "stream": stream}, ids)
        answer = check(await theatre.stage.post(request))
        played = compared(answer.body["output"])
        assert answer.body["status"] == turn.response["status"]
        assert [shaped(item, different) for item in played] == [shaped(item, different) for item in turn.output]
        if turn.events is not None and stream:
            assert [uncited(types) for types in events_by_item(answer.events)] == [
                uncited(each) for each in turn.events
            ]
        ids |= renamed(turn.response, answer.body)


def shaped(item: Json, different: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """The shape of an item, without the places that differ and what is below them."""
    left_out = tuple(place for kind, place in different if kind == item["type"])
    return {place: kind for place, kind in shape(item).items() if not place.startswith(left_out)}


def uncited(types: Sequence[str]) -> list[str]:
    """The types of an item's events, runs of one type as one, without those that cite."""
    return [kind for kind, _run in itertools.groupby(kind for kind in types if kind != CITED_AT_THE_END)]


def with_server(request: Json, url: str) -> Json:
    """The same tools, with MCP tools at a server that is there."""
    tools = [{**tool, "server_url": url} if tool["type"] == "mcp" else tool for tool in request.get("tools", ())]
    return {**request, "tools": tools} if "tools" in request else request


def with_ids(request: Json, ids: dict[str, str]) -> Json:
    """The same request, about what was played instead of what was recorded."""
    text = encode(request).decode()
    for theirs, ours in ids.items():
        text = text.replace(theirs, ours)
    about_the_play: Json = decode(text)
    return about_the_play


def renamed(theirs: Json, ours: Json) -> dict[str, str]:
    """The recorded ids of a response and of its calls, and those of the play."""
    pairs = [(theirs["id"], ours["id"])]
    for recorded, played in zip(compared(theirs["output"]), compared(ours["output"]), strict=True):
        pairs += [(recorded[name], played[name]) for name in ("id", "call_id") if recorded.get(name)]
    return dict(pairs)


async def test_error_of_a_tool_is_shown_as_openai_shows_it(theatre: Theatre, stream: bool) -> None:
    failing = {'"sum"': '"fail"', r"{\"a\":40}": r"{\"message\":\"missing field b\"}"}
    [turn] = recorded_turns(SUM, failing)
    theatre.stage.model.play(*turn.script)

    answer = check(await theatre.stage.post({**with_server(turn.request, theatre.mcp.url), "stream": stream}))

    played = compared(answer.body["output"])
    assert [shape(item) for item in played[1:]] == [shape(item) for item in turn.output[1:]]
    if stream:
        assert events_by_item(answer.events) == turn.events


async def test_calls_past_max_tool_calls_are_shown_where_openai_shows_them(theatre: Theatre, stream: bool) -> None:
    """Recorded with OpenAI's code interpreter, which is not here; played with an MCP tool.

    OpenAI, asked for two calls at most, ran all three. Here the third is an error to the model; the turn goes on.
    """
    [turn] = recorded_turns("max_tool_calls/max-tool-calls-code-interpreter-stream-v3-two.yaml", {})
    tool = {"type": "mcp", "server_label": "code", "server_url": theatre.mcp.url, "require_approval": "never"}
    theatre.stage.model.play(*turn.script)

    answer = check(await theatre.stage.post({**turn.request, "tools": [tool], "stream": stream}))

    listed, *played = answer.body["output"]
    assert listed["type"] == "mcp_list_tools"
    assert [in_place(item) for item in played] == [in_place(item) for item in turn.output]
    assert [item["status"] for item in played] == ["completed", "completed", "failed", "completed"]
    assert (answer.body["status"], turn.response["status"]) == ("completed", "completed")
    assert (answer.body["max_tool_calls"], turn.response["max_tool_calls"]) == (2, 2)
    if stream:
        own, theirs = (events_by_item(answer.events)[1:], turn.events or ())
        assert [in_code(types) for types in own[:2]] == [in_code(types) for types in theirs[:2]]
        assert [types[-2:] for types in own[2:3]] == [["response.mcp_call.failed", "response.output_item.done"]]


def in_place(item: Json) -> str:
    return "call" if item["type"] in GATEWAY_CALLS else str(item["type"])


def in_code(types: Sequence[str]) -> list[str]:
    """The types of a call's events without the tool's own words; only a code interpreter says that it interprets."""
    words = {"mcp_call_arguments": "words", "code_interpreter_call_code": "words"}
    words |= {"mcp_call": "call", "code_interpreter_call": "call"}
    renamed = [".".join(words.get(part, part) for part in kind.split(".")) for kind in types]
    return [kind for kind in renamed if not kind.endswith(".interpreting")]
