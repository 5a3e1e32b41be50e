from __future__ import annotations

import pytest

from attache_core.errors import ClientError
from attache_core.types.retrieve import check_retrieve_query


@pytest.mark.parametrize(
    "query",
    [
        "",
        "stream=false",
        "include=message.output_text.logprobs&include=reasoning.encrypted_content",
        "include[]=message.output_text.logprobs&include%5B%5D=file_search_call.results",
        "include[0]=file_search_call.results",
        "include_obfuscation=true&starting_after=3",
        "unknown=1&also[]=2&&=&x=%FF",
    ],
)
def test_query_that_the_api_knows_or_ignores_is_accepted(query: str) -> None:
    check_retrieve_query(query)


@pytest.mark.parametrize(
    ("query", "param", "code", "message"),
    [
        (
            "stream=true",
            "stream",
            None,
            "Streaming a stored response is not supported yet: omit 'stream'.",
        ),
        (
            "stream=yes",
            "stream",
            "invalid_type",
            "Invalid type for 'stream': expected a boolean, but got a string instead.",
        ),
        (
            "starting_after=",
            "starting_after",
            "invalid_type",
            "Invalid type for 'starting_after': expected an integer, but got a string instead.",
        ),
    ],
)
def test_query_that_cannot_be_answered_is_refused_by_name(query: str, param: str, code: str, message: str) -> None:
    with pytest.raises(ClientError) as refused:
        check_retrieve_query(query)

    error = refused.value
    assert (error.http_status, error.param, error.code, error.message) == (400, param, code, message)


@pytest.mark.parametrize("query", ["include=everything", "include[]=everything", "include[3]=everything"])
def test_unknown_include_is_refused_with_those_that_are_known(query: str) -> None:
    with pytest.raises(ClientError) as refused:
        check_retrieve_query(query)

    error = refused.value
    assert (error.http_status, error.param, error.code) == (400, "include[0]", "invalid_value")
    assert error.message.startswith("Invalid value: 'everything'. Supported values are: 'file_search_call.results'")
