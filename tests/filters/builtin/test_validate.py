"""The filter `validate`: its settings, and what of a turn goes on."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from structlog.testing import capture_logs

from attache_core.errors import ClientError
from attache_core.json_codec import Json, encode
from attache_core.tools.mcp.servers import McpServers
from attache_core.tools.mcp.settings import McpSettings
from attache_core.types.turn import TurnRequest
from attache_filters.builtin.validate import OMITTED_TOOLS, Validate, ValidateConfig
from attache_filters.sdk.filter import Services
from attache_filters.sdk.http import HttpRequest
from attache_filters.testing import RESPONSES_PATH, answering, check_turn_filter, run_http, run_turn, text_events

FUNCTION: Json = {"type": "function", "name": "f"}
CODEX = Path(__file__).parents[2] / "core" / "types" / "data" / "codex_request.json"


def validate(mcp: Json | None = None, **settings: Any) -> Validate:
    servers = McpServers(McpSettings.model_validate(mcp or {}), tasks=None)  # type: ignore[arg-type]  # nothing runs
    return Validate(ValidateConfig(**settings), Services(store=None, mcp=servers))  # type: ignore[arg-type]  # likewise


def turn(**fields: Any) -> TurnRequest:
    return TurnRequest({"model": "m", "input": "Hi", **fields})


@pytest.mark.parametrize("unsupported_tools", ["refuse", "omit"])
async def test_validate_keeps_the_contract_of_a_filter(unsupported_tools: str) -> None:
    await check_turn_filter(validate(unsupported_tools=unsupported_tools))


async def test_validate_with_a_valid_turn_passes_it_as_it_is() -> None:
    below = answering(text_events("Hi"))
    asked = turn(tools=[FUNCTION], of_tomorrow=[1])
    await run_turn(validate(unsupported_tools="omit"), asked, below)
    assert below.turns == [asked]


async def test_validate_refuses_hosted_tools_unless_told_otherwise() -> None:
    below = answering(text_events("Hi"))
    with pytest.raises(ClientError) as raised:
        await run_turn(validate(), turn(tools=[FUNCTION, {"type": "file_search"}]), below)
    assert (raised.value.http_status, raised.value.param, below.turns) == (400, "tools[1].type", [])


async def test_validate_lets_other_turns_go_on_while_it_looks_at_many_items() -> None:
    below = answering(text_events("Hi"))
    many = turn(input=[{"role": "user", "content": "Hi"}] * 10_000)
    seen_by_others = []

    async def other_turn() -> None:
        await asyncio.sleep(0)
        seen_by_others.append(list(below.turns))

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(run_turn(validate(), many, below))
        tasks.create_task(other_turn())

    assert (seen_by_others, below.turns) == ([[]], [many])


async def test_validate_refuses_what_is_wrong_among_many_items() -> None:
    below = answering(text_events("Hi"))
    many = turn(input=[{"role": "user", "content": "Hi"}] * 1000 + [{"role": "nobody", "content": "Hi"}])
    with pytest.raises(ClientError) as raised:
        await run_turn(validate(), many, below)
    assert (raised.value.http_status, raised.value.param, below.turns) == (400, "input[1000]", [])


@pytest.mark.parametrize(
    ("tools", "choice", "left"),
    [
        ([{"type": "file_search"}, FUNCTION], "auto", {"tools": [FUNCTION], "tool_choice": "auto"}),
        ([{"type": "file_search"}], "auto", {}),
        ([{"type": "file_search"}], None, {}),
    ],
)
async def test_validate_that_omits_leaves_hosted_tools_out_and_says_so(
    tools: list[Json], choice: str | None, left: Json
) -> None:
    below = answering(text_events("Hi"))
    request = HttpRequest("POST", RESPONSES_PATH, {}, encode(turn(tools=tools, tool_choice=choice).body))
    with capture_logs() as logs:
        await run_turn(validate(unsupported_tools="omit"), turn(tools=tools, tool_choice=choice), below)
    assert [each.body for each in below.turns] == [{"model": "m", "input": "Hi", **left}]
    assert [(log["event"], log["log_level"], log["types"]) for log in logs] == [
        ("tools left out", "warning", ["file_search"])
    ]
    response, _ = await run_http(validate(unsupported_tools="omit"), request, _nothing_below)
    assert (response.status, response.headers[OMITTED_TOOLS]) == (500, "file_search")


async def _nothing_below(_: HttpRequest) -> Any:
    raise AssertionError("nothing is below")


@pytest.mark.parametrize(
    "settings", [{"unsupported_tools": "ignore"}, {"max_input_items": 0}, {"max_input_items": 1_000_001}, {"max": 1}]
)
def test_validate_with_a_wrong_setting_is_refused(settings: Json) -> None:
    with pytest.raises(ValidationError):
        ValidateConfig(**settings)


async def test_validate_with_as_many_items_as_allowed_passes_and_with_one_more_answers_400() -> None:
    below = answering(text_events("Hi"))
    items = [{"role": "user", "content": "Hi"}] * 2
    await run_turn(validate(max_input_items=2), turn(input=items), below)
    with pytest.raises(ClientError) as raised:
        await run_turn(validate(max_input_items=1), turn(input=items), below)
    assert (raised.value.code, raised.value.param, len(below.turns)) == ("array_above_max_length", "input", 1)


async def test_validate_that_omits_takes_a_recorded_request_of_codex_and_keeps_all_tools_that_are_its_own() -> None:
    body = json.loads(CODEX.read_text())["body"]
    below = answering(text_events("Hi"))
    await run_turn(validate(unsupported_tools="omit"), TurnRequest(body), below)
    (passed,) = below.turns
    own = [tool for tool in body["tools"] if tool["type"] != "web_search"]
    assert passed.body == {**body, "tools": own}
    assert {tool["type"] for tool in own} == {"function", "namespace"}


@pytest.mark.parametrize(
    ("mcp", "param"),
    [
        ({}, "tools[0].server_url"),
        ({"servers": {"other": {"url": "http://h"}}}, "tools[0].server_url"),
        ({"allow_request_servers": False}, "tools[0].server_label"),
        ({"servers": {"weather": {"url": "http://h"}}}, None),
        ({"servers": {"weather": {"url": "http://h"}}, "allow_request_servers": False}, None),
    ],
)
async def test_validate_passes_an_mcp_server_without_a_url_where_the_gateway_file_names_it(
    mcp: Json, param: str | None
) -> None:
    below = answering(text_events("Hi"))
    asked = turn(tools=[{"type": "mcp", "server_label": "weather", "require_approval": "never"}])
    if param is None:
        await run_turn(validate(mcp), asked, below)
        assert below.turns == [asked]
        return
    with pytest.raises(ClientError) as raised:
        await run_turn(validate(mcp), asked, below)
    assert (raised.value.param, below.turns) == (param, [])
