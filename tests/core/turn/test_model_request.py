from __future__ import annotations

from typing import Any

import pytest

from attache_core.errors import ClientError
from attache_core.json_codec import Json
from attache_core.turn.model_request import model_request
from attache_core.types.parameters import CreateRequest
from attache_core.types.turn import TurnRequest


def sent(**body: Any) -> Json:
    """What a server is asked of a turn whose history, if any, was loaded."""
    return model_request(TurnRequest({"model": "m", "input": "Hi", **body}).with_facts(history_items=0)).body


def test_nothing_is_added_to_the_shortest_request_but_that_nothing_is_to_be_kept() -> None:
    assert sent() == {"model": "m", "input": "Hi", "store": False}
    assert sent(store=True) == {"model": "m", "input": "Hi", "store": False}


@pytest.mark.parametrize(
    "given",
    [
        {"seed": 7, "top_k": 40, "chat_template_kwargs": {"enable_thinking": False}, "anything_new": [1, None]},
        {"min_p": None, "extra": {"deep": None}},
        {
            "metadata": {"a": "b"},
            "user": "u",
            "safety_identifier": "s",
            "prompt_cache_key": "k",
            "service_tier": "auto",
        },
        {"temperature": 0, "top_p": 1.0, "top_logprobs": 0, "max_output_tokens": 5, "truncation": "disabled"},
        {"parallel_tool_calls": False, "stream": False, "instructions": "", "text": {"verbosity": "low"}},
        {"reasoning": {"effort": "low"}, "include": ["message.output_text.logprobs", "reasoning.encrypted_content"]},
        {"tools": [{"type": "custom", "name": "patch"}], "tool_choice": "auto"},
        {"stream": True, "stream_options": {"chunk_size": 4}},
        {"prompt": {"id": "pmpt_1"}, "context_management": [{"type": "compaction"}]},
    ],
)
def test_what_the_gateway_does_not_answer_goes_on_unchanged(given: Json) -> None:
    assert sent(**given) == {"model": "m", "input": "Hi", **given, "store": False}


@pytest.mark.parametrize(
    "given",
    [
        {"previous_response_id": "resp_1"},
        {"conversation": {"id": "conv_1"}},
        {"background": False},
        {"max_tool_calls": 3},
        {"stream_options": {"include_obfuscation": False}},
        {"stream_options": {}},
        {"include": ["file_search_call.results", "web_search_call.action.sources"]},
        {"include": []},
    ],
)
def test_what_the_gateway_has_answered_is_not_asked_of_the_server(given: Json) -> None:
    assert sent(**given) == sent()


def test_of_options_that_are_partly_the_gateways_the_rest_goes_on() -> None:
    include = ["code_interpreter_call.outputs", "reasoning.encrypted_content"]

    got = sent(stream_options={"include_obfuscation": True, "chunk_size": 4}, include=include)

    assert got == {**sent(), "stream_options": {"chunk_size": 4}, "include": ["reasoning.encrypted_content"]}


def test_parameter_of_the_api_that_is_null_is_not_sent() -> None:
    names = set(CreateRequest.model_fields) - {"model", "input"}

    assert sent(**dict.fromkeys(names)) == sent()


def test_turn_itself_stays_as_it_was() -> None:
    turn = TurnRequest({"model": "m", "input": [{"id": "x", "role": "user", "content": "Hi"}], "include": []})
    before = {**turn.body, "input": [dict(item) for item in turn.body["input"]]}

    model_request(turn)

    assert turn.body == before


@pytest.mark.parametrize("given", [{"previous_response_id": "resp_1"}, {"conversation": "conv_1"}])
def test_state_that_nobody_loaded_is_refused_by_name(given: Json) -> None:
    (name,) = given
    with pytest.raises(ClientError) as refused:
        model_request(TurnRequest({"model": "m", "input": "Hi", **given}))

    assert (refused.value.http_status, refused.value.code, refused.value.param) == (400, "unsupported_parameter", name)


def test_mcp_tool_that_nobody_runs_is_refused_by_name() -> None:
    with pytest.raises(ClientError) as refused:
        sent(tools=[{"type": "function", "name": "f"}, {"type": "mcp", "server_label": "s", "authorization": "secret"}])

    assert (refused.value.http_status, refused.value.param) == (400, "tools[1].type")
    assert "secret" not in refused.value.message


def test_approval_of_a_call_that_nobody_runs_is_refused() -> None:
    """One of a turn before is history, which says nothing to a server that has no tools."""
    asked = {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "s", "name": "f", "arguments": "{}"}
    response = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": False}
    with pytest.raises(ClientError) as refused:
        sent(input=[asked, response])

    assert (refused.value.http_status, refused.value.param) == (400, "input")
    said = {"role": "assistant", "content": "A pity."}
    assert sent(input=[asked, response, said])["input"] == [said]
