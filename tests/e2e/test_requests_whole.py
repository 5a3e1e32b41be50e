"""Create requests, whole: what reaches the model server, what is refused, and that nothing fails late."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from attache_core.json_codec import Json
from attache_core.testing.model_script import call, function_calls, http_error, text
from attache_core.testing.model_server import ReceivedRequest
from core.types.documented_parameters import UNKNOWN, sent_parameters
from e2e.stage import Answered, Stage, open_stage

OMITTING = """
chains:
  responses:
    - filter: validate
      unsupported_tools: omit
      max_input_items: 3
    - filter: persist
    - filter: rehydrate
    - filter: tool_dispatch
      loop:
        - filter: upstream_round
"""
EXCLUSIVE = (
    "Mutually exclusive parameters. Ensure you are only providing one of: 'previous_response_id' or 'conversation'."
)
WEATHER: Json = {"type": "function", "name": "get_weather", "parameters": {"type": "object", "properties": {}}}


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def omitting(placement: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    async with open_stage(placement, tmp_path_factory.mktemp(f"omit-{placement}"), gateway_yaml=OMITTING) as stage:
        yield stage


def refused(answer: Answered) -> tuple[int, str | None, str | None, str]:
    error = answer.body["error"]
    assert (set(error), error["type"]) == ({"message", "type", "param", "code"}, "invalid_request_error")
    return answer.status, error["param"], error["code"], error["message"]


async def test_every_parameter_that_is_sent_reaches_the_model_server_unchanged(stage: Stage, stream: bool) -> None:
    stage.model.play(text("One."), text("Two."), text("Three."))
    sent = {**sent_parameters(), **UNKNOWN, "stream": stream}

    first = await stage.post(sent)
    await stage.post({**sent, "store": False})
    await stage.post({**sent, "previous_response_id": first.body["id"]})

    expected = {**sent, "store": False}
    *alone, continued = [json.loads(request.raw) for request in stage.model.requests]
    assert alone == [expected, expected]
    assert {**continued, "input": sent["input"]} == expected
    assert {**continued["input"][0], **sent["input"][0]} == continued["input"][0]
    assert continued["input"][-1] == sent["input"][0]
    assert len(continued["input"]) == 3


async def test_bare_request_gets_nothing_added_but_that_the_server_is_to_store_nothing(stage: Stage) -> None:
    stage.model.play(text("Yes."))
    await stage.post({"model": "m", "input": "Hi"})
    assert stage.model.asked == [{"model": "m", "input": "Hi", "store": False}]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"conversation": "conv_1"},
            (404, "conversation", None, "Conversation with id 'conv_1' not found."),
        ),
        (
            {"conversation": {"id": "conv_1"}},
            (404, "conversation", None, "Conversation with id 'conv_1' not found."),
        ),
        (
            {"conversation": {"id": "resp_1"}},
            (
                400,
                "conversation.id",
                "invalid_value",
                "Invalid 'conversation.id': 'resp_1'. Expected an ID that begins with 'conv'.",
            ),
        ),
        (
            {"conversation": "conv_1", "previous_response_id": "resp_1"},
            (
                400,
                None,
                "mutually_exclusive_parameters",
                EXCLUSIVE,
            ),
        ),
        (
            {"input": [{"role": "user", "content": "Hi"}] * 10_001},
            (
                400,
                "input",
                "array_above_max_length",
                "Invalid 'input': array too long. Expected an array with maximum length 10000, but got",
            ),
        ),
        (
            {"input": [{"role": "user", "content": "Hi"}, {"type": "agent_call"}]},
            (400, "input[1]", "invalid_value", "Invalid value: 'agent_call'."),
        ),
        (
            {"input": [{"role": "user", "content": [{"type": "hologram"}]}]},
            (400, "input[0].content[0].type", "invalid_value", "Invalid value: 'hologram'."),
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else str(value[0]),
)
async def test_request_that_cannot_be_answered_is_refused_before_the_model_is_asked(
    stage: Stage, stream: bool, fields: Json, expected: tuple[int, str | None, str | None, str]
) -> None:
    answer = await stage.ask(**{"input": "Hi", "stream": stream, **fields})

    *kind, message = refused(answer)
    assert (*kind,) == expected[:3]
    assert message.startswith(expected[3])
    assert stage.model.asked == []


ODD = "a\u0000b\ud83dc\udc00\ud800\u2028\ufeff\N{GRINNING FACE}"
ODD_FIELDS: Json = {
    "instructions": ODD,
    "user": ODD,
    "metadata": {ODD: ODD, "\u0000": ""},
    "tools": [{**WEATHER, "description": ODD, "parameters": {"type": "object", "properties": {ODD: {"const": ODD}}}}],
    "of_tomorrow": {ODD: [ODD]},
}
ODD_ARGUMENTS = json.dumps({ODD: ODD})
ODD_ITEMS: list[Json] = [
    {"role": "user", "content": [{"type": "input_text", "text": ODD}]},
    {"type": "function_call", "call_id": "c\u0000", "name": "get_weather", "arguments": ODD_ARGUMENTS},
    {"type": "function_call_output", "call_id": "c\u0000", "output": ODD},
]


@pytest.mark.parametrize("store", [True, False], ids=["stored", "unstored"])
async def test_nul_and_lone_surrogates_survive_the_whole_trip(stage: Stage, stream: bool, store: bool) -> None:
    stage.model.play(text("Yes."), text("Again."))

    answer = await stage.ask(input=ODD_ITEMS, stream=stream, store=store, **ODD_FIELDS)

    assert answer.status == 200, answer.body
    (asked,) = stage.model.asked
    assert {name: asked[name] for name in ODD_FIELDS} == ODD_FIELDS
    assert [item.get("content") or item.get("arguments") or item["output"] for item in asked["input"]] == [
        ODD_ITEMS[0]["content"],
        ODD_ARGUMENTS,
        ODD,
    ]
    assert {name: answer.body[name] for name in ("instructions", "user", "metadata")} == {
        name: ODD_FIELDS[name] for name in ("instructions", "user", "metadata")
    }
    assert answer.body["tools"][0]["description"] == ODD
    if store:
        stored = await stage.get(f"/v1/responses/{answer.body['id']}")
        assert json.loads(stored.content) == answer.body
        await stage.ask(input="Go on", previous_response_id=answer.body["id"])
        continued = stage.model.asked[1]["input"][: len(ODD_ITEMS)]
        assert [{**item, "id": None} for item in continued] == [
            {"type": "message", **item, "id": None} for item in asked["input"]
        ]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"model": "\ud83d"}, "model"),
        ({"previous_response_id": "resp_\ud83d"}, "previous_response_id"),
        ({"previous_response_id": "resp_\u0000"}, "previous_response_id"),
        ({"conversation": {"id": "conv_\ud83d"}}, "conversation.id"),
        ({"input": [{"role": "user", "content": "Hi", "id": "\ud83d"}]}, "input[0].id"),
        ({"input": [{"type": "item_reference", "id": "\ud83d"}]}, "input[0].id"),
        ({"input": [{"type": "\ud83d"}]}, "input[0]"),
        ({"tools": [{"type": "function", "name": "\ud83d"}]}, "tools[0].name"),
        ({"tools": [{"type": "function", "name": "\u0000"}]}, "tools[0].name"),
        ({"tool_choice": {"type": "\ud83d"}}, "tool_choice.type"),
        ({"metadata": {"\ud83d": 1}}, "metadata.\ud83d"),
        ({"prompt_cache_key": "\ud83d"}, "prompt_cache_key"),
    ],
    ids=ascii,
)
async def test_nul_or_lone_surrogate_where_a_grammar_rules_is_refused_at_once(
    stage: Stage, stream: bool, fields: Json, param: str
) -> None:
    answer = await stage.ask(**{"input": "Hi", "stream": stream, **fields})

    assert refused(answer)[:2] == (400, param)
    assert stage.model.asked == []


async def test_reference_by_an_id_with_a_nul_is_not_found(stage: Stage) -> None:
    answer = await stage.ask(input=[{"type": "item_reference", "id": "msg_\u0000"}])
    assert (refused(answer)[0], stage.model.asked) == (404, [])


NOT_PARSED = "We could not parse the JSON body of your request: "


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "it is not valid JSON."),
        (b"not json", "it is not valid JSON."),
        (b'\xef\xbb\xbf{"model": "m", "input": "Hi"}', "it is not valid JSON."),
        (b'{"model": "m", "input": "\xff"}', "it is not valid JSON."),
        (b'{"model": "m", "input": "\xed\xa0\xbd"}', "it is not valid JSON."),
        ('{"model": "m", "input": "Hi"}'.encode("utf-16"), "it is not valid JSON."),
        (b'{"model": "m", "input": "Hi", "temperature": NaN}', "it is not valid JSON."),
        (b'{"model": "m", "input": "Hi", "temperature": -Infinity}', "it is not valid JSON."),
        (b'{"model": "m", "input": "Hi", "of_tomorrow": 1e999}', "it is not valid JSON."),
        (b'{"model": "m", "input": "Hi", "seed": ' + b"9" * 5000 + b"}", "it is not valid JSON."),
        (b'{"model": "m", "input": ' + b"[" * 100_000, "it is not valid JSON."),
        (b'{"model": "m", "input": ' + b"[" * 300 + b"]" * 300 + b"}", "it is nested deeper than 200 levels."),
        (b"[1]", "it is JSON, but not an object."),
    ],
    ids=lambda value: repr(value)[:40] if isinstance(value, bytes) else "",
)
async def test_body_that_is_no_json_object_is_refused_with_the_reason(stage: Stage, body: bytes, reason: str) -> None:
    answer = await stage.post(body)
    assert refused(answer) == (400, None, None, NOT_PARSED + reason)
    assert stage.model.asked == []


async def test_large_integers_keep_their_digits_and_of_a_repeated_key_the_last_counts(stage: Stage) -> None:
    stage.model.play(text("Yes."))
    await stage.post(
        b'{"model": "a", "input": "Hi", "seed": 123456789012345678901234567890, "n": -9223372036854775809,'
        b' "model": "b"}'
    )
    (request,) = stage.model.requests
    assert json.loads(request.raw) == {
        "model": "b",
        "input": "Hi",
        "seed": 123456789012345678901234567890,
        "n": -9223372036854775809,
        "store": False,
    }


async def test_large_integers_keep_their_digits_in_the_answer_and_in_the_history(stage: Stage, stream: bool) -> None:
    stage.model.play(text("Yes."))
    tool = {"type": "function", "name": "count", "parameters": {"maximum": 10**30 + 1}, "strict": False}
    first = await stage.ask(input=[{"role": "user", "content": "Hi", "x": 10**31 + 1}], tools=[tool], stream=stream)
    assert first.body["tools"] == [{**tool, "description": None}]
    await stage.ask(input="More?", previous_response_id=first.body["id"], stream=stream)
    sent = json.loads(stage.model.requests[-1].raw)["input"][0]
    assert sent["x"] == 10**31 + 1


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        ({"type": "custom", "name": "run", "format": {"type": "text"}}, "run"),
        ({"type": "namespace", "name": "files", "description": "d", "tools": [WEATHER]}, "files__get_weather"),
        ({"type": "tool_search", "execution": "client", "parameters": {"type": "object"}}, "tool_search"),
    ],
    ids=["custom", "namespace", "tool_search"],
)
async def test_tool_of_another_kind_that_is_the_clients_is_sent_as_a_function(
    stage: Stage, tool: Json, name: str
) -> None:
    stage.model.play(text("Yes."))
    await stage.ask(input="Hi", tools=[tool, stage.mcp_tool(allowed_tools=["echo"])])
    (asked,) = stage.model.asked
    assert [(sent["type"], sent["name"]) for sent in asked["tools"]] == [("function", name), ("function", "echo")]


HOSTED: list[Json] = [{"type": "file_search", "vector_store_ids": ["v"]}, {"type": "code_interpreter"}]
OMITTED = "file_search, code_interpreter"


async def test_hosted_tools_that_are_omitted_are_named_in_a_header_and_never_sent(
    omitting: Stage, stream: bool
) -> None:
    omitting.model.play(text("Yes."), text("Yes."))

    some = await omitting.ask(input="Hi", tools=[HOSTED[0], WEATHER, *HOSTED], stream=stream)
    none = await omitting.ask(input="Hi", tools=[*HOSTED], tool_choice="auto", stream=stream)
    plain = await omitting.ask(input="Hi", model="")

    assert [answer.headers.get("attache-omitted-tools") for answer in (some, none, plain)] == [OMITTED, OMITTED, None]
    assert [asked.get("tools") for asked in omitting.model.asked] == [[WEATHER], None]
    assert "tool_choice" not in omitting.model.asked[1]
    assert [tool["type"] for tool in some.body["tools"]] == ["function"]
    assert none.body["tools"] == []
    for request in omitting.model.requests:
        assert not [name for name in request.headers if "attache" in name.lower()]


async def test_hosted_tools_that_are_omitted_are_named_on_errors_as_well(omitting: Stage, stream: bool) -> None:
    omitting.model.play(http_error(429, headers={"retry-after": "3"}))

    answer = await omitting.ask(input="Hi", tools=HOSTED, stream=stream)

    assert (answer.status, answer.headers["attache-omitted-tools"]) == (429, OMITTED)
    assert answer.headers["retry-after"] == "3"


async def test_hosted_tools_that_are_omitted_are_named_when_the_gateway_runs_others(
    omitting: Stage, stream: bool
) -> None:
    def answer(request: ReceivedRequest) -> Any:
        tools = [tool["name"] for tool in request.body["tools"]]
        said = [item for item in request.body["input"] if isinstance(item, dict) and "output" in item]
        return text("Done.") if said else function_calls(call(tools[0], {"text": "hello"}))

    omitting.model.set(answer)

    got = await omitting.ask(input="Hi", tools=[*HOSTED, omitting.mcp_tool(allowed_tools=["echo"])], stream=stream)

    assert (got.status, got.text, got.headers["attache-omitted-tools"]) == (200, "Done.", OMITTED)
    assert len(omitting.model.asked) == 2
    assert {tool["type"] for asked in omitting.model.asked for tool in asked["tools"]} == {"function"}


async def test_choice_of_an_omitted_tool_is_refused_by_name(omitting: Stage) -> None:
    answer = await omitting.ask(input="Hi", tools=[*HOSTED, WEATHER], tool_choice={"type": "file_search"})
    assert refused(answer) == (400, "tool_choice", None, "Tool choice 'file_search' not found in 'tools' parameter.")


async def test_as_many_input_items_as_the_setting_allows_are_answered_and_one_more_is_refused(
    omitting: Stage, stream: bool
) -> None:
    omitting.model.play(text("Yes."))
    item = {"role": "user", "content": "Hi"}

    at_the_edge = await omitting.ask(input=[item] * 3, stream=stream)
    past_it = await omitting.ask(input=[item] * 4, stream=stream)

    assert (at_the_edge.status, refused(past_it)[:3]) == (200, (400, "input", "array_above_max_length"))
    assert len(omitting.model.asked) == 1
