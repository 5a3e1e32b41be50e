"""docs/parameters.md against the `openai` package and against what really becomes of each parameter."""

from __future__ import annotations

from typing import Any, get_type_hints

import pytest
from openai.types.responses.response_create_params import (
    ResponseCreateParamsNonStreaming,
    ResponseCreateParamsStreaming,
)

from attache_core.errors import ClientError
from attache_core.json_codec import Json
from attache_core.turn.model_request import model_request
from attache_core.types.parameters import CreateRequest
from attache_core.types.request import validate_create
from attache_core.types.turn import TurnRequest
from core.types.documented_parameters import FATE, SAMPLES, UNKNOWN, sent_parameters

BEYOND_THE_SDK = {"frequency_penalty", "presence_penalty"}
"""What OpenAI's responses show, and the package has no parameter for."""

REQUIRED: Json = {"model": "m", "input": "Hi", "tools": SAMPLES["tools"]}


def named(*fates: str) -> list[str]:
    return [name for name, fate in FATE.items() if fate in fates]


def asked(body: Json) -> Json:
    """What an inference server is asked, where history has been loaded."""
    return model_request(TurnRequest(body).with_facts(history_items=0)).body


def test_table_has_every_parameter_of_the_api_and_no_other() -> None:
    theirs = {*get_type_hints(ResponseCreateParamsNonStreaming), *get_type_hints(ResponseCreateParamsStreaming)}
    assert set(FATE) == theirs | BEYOND_THE_SDK
    assert set(FATE) == set(CreateRequest.model_fields) == set(SAMPLES)
    assert list(FATE) == sorted(FATE)


@pytest.mark.parametrize("name", named("sent", "here and sent"))
def test_parameter_that_is_sent_reaches_the_server_unchanged_and_brings_nothing_along(name: str) -> None:
    body = {**REQUIRED, name: SAMPLES[name]}
    validate_create(body)
    assert asked(body) == {**body, "store": False}


@pytest.mark.parametrize("name", named("here"))
def test_parameter_that_is_handled_here_is_accepted_and_not_sent(name: str) -> None:
    body = {**REQUIRED, name: SAMPLES[name]}
    validate_create(body)
    assert asked(body) == {**REQUIRED, "store": False}


@pytest.mark.parametrize("name", named("refused"))
def test_parameter_that_is_refused_is_400_with_its_name(name: str) -> None:
    with pytest.raises(ClientError) as raised:
        validate_create({**REQUIRED, name: SAMPLES[name]})
    assert (raised.value.http_status, raised.value.param) == (400, name)
    validate_create({**REQUIRED, name: None})


@pytest.mark.parametrize("name", sorted(set(FATE) - {"model", "input"}))
def test_parameter_that_is_null_counts_as_absent(name: str) -> None:
    body = {**REQUIRED, name: None}
    validate_create(body)
    assert asked(body) == {key: value for key, value in {**body, "store": False}.items() if value is not None}


@pytest.mark.parametrize(("name", "value"), UNKNOWN.items())
def test_parameter_that_is_not_known_reaches_the_server_unchanged(name: str, value: Any) -> None:
    body = {**REQUIRED, name: value}
    validate_create(body)
    assert asked(body) == {**body, "store": False}


def test_all_that_is_sent_may_be_sent_at_once() -> None:
    body = {**sent_parameters(), **UNKNOWN}
    validate_create(body)
    assert asked(body) == {**body, "store": False}
