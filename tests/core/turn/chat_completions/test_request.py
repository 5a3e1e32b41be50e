"""A create request becomes a chat request: every parameter is translated, passed on, or refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from attache_core.errors import ClientError
from attache_core.json_codec import Json
from attache_core.turn.chat_completions import ChatRequestOptions, MaxTokensField, chat_request
from attache_core.turn.model_request import model_request
from attache_core.types.turn import TurnRequest

LOOK: Json = {"type": "function", "name": "look", "parameters": {"type": "object"}, "strict": None, "description": None}
GO: Json = {"type": "function", "name": "go", "description": "Go.", "strict": True, "parameters": {"type": "object"}}
CHAT_LOOK: Json = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
CHAT_GO: Json = {
    "type": "function",
    "function": {"name": "go", "description": "Go.", "strict": True, "parameters": {"type": "object"}},
}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}


def asked(options: ChatRequestOptions | None = None, **body: Any) -> Json:
    turn = model_request(TurnRequest({"model": "m", "input": "Hi", **body}))
    return chat_request(turn, options or ChatRequestOptions())


def beside(**body: Any) -> Json:
    """What the chat request has beside the model and the messages."""
    request = asked(**body)
    assert (request.pop("model"), request.pop("messages")) == ("m", [{"role": "user", "content": "Hi"}])
    return request


def test_plain_text_is_a_model_and_a_message_and_nothing_else() -> None:
    assert asked(store=True, previous_response_id=None) == {
        "model": "m",
        "messages": [{"role": "user", "content": "Hi"}],
    }


def test_body_of_the_turn_is_not_changed() -> None:
    turn = TurnRequest({"model": "m", "input": "Hi", "tools": [LOOK], "stream": True})
    before = dict(turn.body)

    chat_request(turn, ChatRequestOptions())

    assert turn.body == before


TRANSLATED: list[tuple[Json, Json]] = [
    ({"max_output_tokens": 5}, {"max_tokens": 5}),
    ({"max_output_tokens": None}, {}),
    ({"reasoning": {"effort": "low", "summary": "auto"}}, {"reasoning_effort": "low"}),
    ({"reasoning": {"summary": "detailed"}}, {}),
    ({"reasoning": None}, {}),
    ({"text": {"verbosity": "low"}}, {"verbosity": "low"}),
    ({"text": {"format": {"type": "text"}}}, {}),
    ({"text": {"format": {"type": "json_object"}}}, {"response_format": {"type": "json_object"}}),
    (
        {"text": {"format": {"type": "json_schema", "name": "a", "schema": SCHEMA, "strict": True}}},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA, "strict": True}}},
    ),
    ({"top_logprobs": 2}, {"logprobs": True, "top_logprobs": 2}),
    ({"top_logprobs": 0}, {}),
    ({"include": ["message.output_text.logprobs"]}, {"logprobs": True}),
    (
        {"include": ["message.output_text.logprobs", "reasoning.encrypted_content"], "top_logprobs": 0},
        {"logprobs": True, "top_logprobs": 0},
    ),
    ({"include": ["reasoning.encrypted_content"]}, {}),
    ({"stream": False}, {"stream": False}),
    ({"stream": True}, {"stream": True, "stream_options": {"include_usage": True}}),
    (
        {"stream": True, "stream_options": {"include_obfuscation": True, "continuous_usage_stats": True}},
        {"stream": True, "stream_options": {"continuous_usage_stats": True, "include_usage": True}},
    ),
    ({"stream": False, "stream_options": {"include_obfuscation": True}}, {"stream": False}),
    ({"truncation": "disabled"}, {}),
    ({"tools": [LOOK, GO]}, {"tools": [CHAT_LOOK, CHAT_GO]}),
    ({"tools": [], "tool_choice": "auto", "parallel_tool_calls": True}, {}),
    ({"tools": [LOOK], "parallel_tool_calls": False}, {"tools": [CHAT_LOOK], "parallel_tool_calls": False}),
    *[({"tools": [LOOK], "tool_choice": mode}, {"tools": [CHAT_LOOK], "tool_choice": mode}) for mode in
      ("auto", "none", "required")],
    (
        {"tools": [LOOK, GO], "tool_choice": {"type": "function", "name": "go"}},
        {"tools": [CHAT_LOOK, CHAT_GO], "tool_choice": {"type": "function", "function": {"name": "go"}}},
    ),
    (
        {
            "tools": [LOOK, GO],
            "tool_choice": {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "go"}]},
        },
        {"tools": [CHAT_GO], "tool_choice": "required"},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("given", "expected"), TRANSLATED)
def test_parameter_is_translated(given: Json, expected: Json) -> None:
    assert beside(**given) == expected


PASSED: Json = {
    "temperature": 0.5,
    "top_p": 0.9,
    "presence_penalty": 0.1,
    "frequency_penalty": 0.2,
    "user": "u",
    "safety_identifier": "s",
    "prompt_cache_key": "k",
    "service_tier": "auto",
    "metadata": {"a": "b"},
    "seed": 7,
    "top_k": 3,
    "chat_template_kwargs": {"enable_thinking": False},
    "n": 1,
    "stop": ["END"],
    "anything_new": [1, None],
}


def test_parameter_of_both_apis_or_of_the_server_goes_on_as_it_came() -> None:
    assert beside(**PASSED) == PASSED


@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
def test_bound_on_tokens_goes_by_the_name_that_is_set(field: MaxTokensField) -> None:
    request = asked(ChatRequestOptions(max_tokens_field=field), max_output_tokens=9)

    assert {name: value for name, value in request.items() if "tokens" in name} == {field: 9}


REFUSED: list[tuple[Json, str]] = [
    ({"truncation": "auto"}, "truncation"),
    ({"n": 2}, "n"),
    ({"text": {"format": {"type": "grammar"}}}, "text.format.type"),
    ({"text": {"tone": "warm"}}, "text.tone"),
    ({"reasoning": {"summary": "concise"}}, "reasoning.summary"),
    ({"reasoning": {"context": "all_turns"}}, "reasoning.context"),
]


@pytest.mark.parametrize(("given", "param"), REFUSED)
def test_what_cannot_be_expressed_is_refused_by_name(given: Json, param: str) -> None:
    with pytest.raises(ClientError) as refused:
        asked(**given)

    error = refused.value
    assert (error.http_status, error.type, error.param) == (400, "invalid_request_error", param)
    assert "Chat Completions" in error.message


NO_FUNCTIONS: list[tuple[Json, str, str]] = [
    *[({"tools": [LOOK, {"type": kind, "name": "it"}]}, "tools[1].type", kind) for kind in
      ("custom", "namespace", "tool_search", "shell", "local_shell", "apply_patch", "web_search", "acme_lookup")],
    ({"tools": [LOOK], "tool_choice": {"type": "web_search"}}, "tool_choice", "web_search"),
    ({"tools": [LOOK], "tool_choice": {"type": "custom", "name": "look"}}, "tool_choice", "custom"),
    ({"tools": [LOOK], "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "shell"}]}},
     "tool_choice", "shell"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "param", "kind"), NO_FUNCTIONS)
def test_tool_that_is_no_function_is_refused_with_the_chain_that_serves_it(given: Json, param: str, kind: str) -> None:
    with pytest.raises(ClientError) as refused:
        asked(**given)

    error = refused.value
    assert (error.http_status, error.code, error.param) == (400, "unsupported_value", param)
    assert f"'{kind}'" in error.message
    assert error.message.endswith("A chain with 'tool_dispatch' serves tools that are no functions, and their calls.")
