"""The response object at its beginning, against OpenAI's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import Response

from attache_core.json_codec import Json
from attache_core.types.request import validate_create
from attache_core.types.response import new_response

DATA = Path(__file__).parent / "data"
RECORDED = json.loads((DATA / "recorded_created.json").read_text())["exchanges"]
REQUESTS = json.loads((DATA / "recorded_requests.json").read_text())["requests"]


NEWER_THAN_THE_RECORDINGS = (
    "access_programs",
    "conversation",
    "image",
    "input_transformations",
    "prompt",
    "prompt_cache_diagnostics",
    "prompt_cache_options",
)

BEYOND_THE_SDK = {"frequency_penalty", "presence_penalty", "store"}
"""What OpenAI's recordings have and the SDK's model has not."""


def test_new_response_has_every_field_of_the_sdks_model_and_no_other_than_the_recordings_have() -> None:
    shown = new_response({"model": "m", "input": "Hi"}, response_id="resp_1", created_at=1)
    assert set(shown) == {*Response.model_fields, *BEYOND_THE_SDK}
    assert all(set(recorded["response"]) >= BEYOND_THE_SDK for recorded in RECORDED)


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ({"conversation": "conv_1"}, {"conversation": {"id": "conv_1"}}),
        ({"conversation": {"id": "conv_1"}}, {"conversation": {"id": "conv_1"}}),
        ({"image": {"context_compression": "enabled"}}, {"image": {"context_compression": "enabled"}}),
        ({"image": {"context_compression": "auto"}}, {"image": None}),
        ({"image": {}}, {"image": None}),
        (
            {"prompt_cache_options": {"ttl": "12h"}},
            {"prompt_cache_options": {"mode": "implicit", "ttl": "12h", "comparison_response_id": None}},
        ),
        ({"prompt_cache_options": {}}, {"prompt_cache_options": None}),
        ({"access_programs": {"cyber": "standard"}}, {"access_programs": {"cyber": "standard"}}),
        ({"access_programs": {"cyber": None}}, {"access_programs": None}),
        (
            {"reasoning": {"mode": "pro", "context": "auto"}},
            {"reasoning": {"context": "auto", "effort": None, "summary": None, "mode": "pro"}},
        ),
    ],
)
def test_new_response_of_a_recent_parameter_shows_it_as_the_sdk_reads_it(sent: Json, shown: Json) -> None:
    body = {"model": "m", "input": "Hi", **sent}
    validate_create(body)
    response = new_response(body, response_id="resp_1", created_at=1)
    assert {name: response[name] for name in shown} == shown
    Response.model_validate(response)


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda recorded: f"{recorded['recording']}#{recorded['turn']}")
def test_new_response_of_a_recorded_request_is_what_openai_began_with(recorded: Json) -> None:
    theirs = recorded["response"]
    ours = new_response(recorded["request"], response_id=theirs["id"], created_at=theirs["created_at"])
    # What OpenAI decides by itself: which snapshot of a model answers, and how long prompts are cached.
    decided = {"model": recorded["request"]["model"], "prompt_cache_retention": None}
    assert ours == {**theirs, **decided, **dict.fromkeys(NEWER_THAN_THE_RECORDINGS)}
    assert list(ours) == [*theirs, *NEWER_THAN_THE_RECORDINGS]
    assert [list(tool) for tool in ours["tools"]] == [list(tool) for tool in theirs["tools"]]


def is_supported(body: Json) -> bool:
    """Whether every declared tool is one that the gateway takes."""
    return all(tool["type"] in ("function", "mcp") for tool in body.get("tools", []))


SUPPORTED = [recorded for recorded in REQUESTS if is_supported(recorded["body"])]


@pytest.mark.parametrize("recorded", SUPPORTED, ids=lambda recorded: f"{recorded['recording']}#{recorded['turn']}")
def test_new_response_of_any_recorded_request_is_a_response_of_the_sdk(recorded: Json) -> None:
    Response.model_validate(new_response(recorded["body"], response_id="resp_1", created_at=1))


def test_new_response_of_a_request_with_everything_shows_what_was_sent() -> None:
    sent: Json = {
        "frequency_penalty": 0.5,
        "instructions": "Be brief.",
        "max_output_tokens": 64,
        "max_tool_calls": 3,
        "metadata": {"topic": "demo"},
        "parallel_tool_calls": False,
        "presence_penalty": -0.5,
        "previous_response_id": "resp_0",
        "prompt_cache_key": "k",
        "prompt_cache_retention": "24h",
        "safety_identifier": "s",
        "service_tier": "flex",
        "store": False,
        "temperature": 0,
        "tool_choice": {"type": "function", "name": "f"},
        "top_logprobs": 2,
        "top_p": 0.5,
        "truncation": "auto",
        "user": "u",
    }
    body = {
        **sent,
        "model": "m",
        "input": "Hi",
        "reasoning": {"effort": "low"},
        "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}, "verbosity": "low"},
        "tools": [{"type": "function", "name": "f"}],
    }
    validate_create(body)
    shown = new_response(body, response_id="resp_1", created_at=1)
    schema = {"type": "json_schema", "description": None, "name": "n", "schema": {"type": "object"}, "strict": False}
    assert {name: shown[name] for name in sent} == sent
    assert shown["reasoning"] == {"context": None, "effort": "low", "summary": None}
    assert shown["text"] == {"format": schema, "verbosity": "low"}
    Response.model_validate(shown)


OPTIONAL = [
    "frequency_penalty",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "parallel_tool_calls",
    "presence_penalty",
    "previous_response_id",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
    "background",
    "access_programs",
    "conversation",
    "image",
    "prompt",
    "prompt_cache_options",
]


@given(st.sets(st.sampled_from(OPTIONAL)))
def test_new_response_with_null_shows_what_it_shows_when_absent(nulls: set[str]) -> None:
    bare: dict[str, Any] = {"model": "m", "input": "Hi"}
    shown = new_response({**bare, **dict.fromkeys(nulls)}, response_id="resp_1", created_at=1)
    assert shown == new_response(bare, response_id="resp_1", created_at=1)


def test_new_response_never_holds_what_a_client_keeps_secret() -> None:
    tool = {
        "type": "mcp",
        "server_label": "s",
        "server_url": "https://a:s3cret@h/mcp",
        "require_approval": "never",
        "headers": {"authorization": "s3cret"},
        "authorization": "s3cret",
    }
    body = {"model": "m", "input": "Hi", "tools": [tool]}
    validate_create(body)
    assert "s3cret" not in str(new_response(body, response_id="resp_1", created_at=1))
