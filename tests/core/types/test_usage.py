"""Usage: whole objects out of whatever a server reports."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st
from openai.types.responses.response_usage import ResponseUsage

from attache_core.json_codec import Json
from attache_core.types.usage import add_usage, full_usage


def usage(*counts: int) -> Json:
    """A whole usage object: input, cached, cache written, output, reasoning, total."""
    given, cached, written, taken, reasoned, total = counts
    return {
        "input_tokens": given,
        "input_tokens_details": {"cache_write_tokens": written, "cached_tokens": cached},
        "output_tokens": taken,
        "output_tokens_details": {"reasoning_tokens": reasoned},
        "total_tokens": total,
    }


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        (None, None),
        ("none", None),
        ({}, usage(0, 0, 0, 0, 0, 0)),
        ({"input_tokens": 3, "output_tokens": 4}, usage(3, 0, 0, 4, 0, 7)),
        ({"input_tokens": 3, "output_tokens": 4, "total_tokens": None}, usage(3, 0, 0, 4, 0, 7)),
        ({"input_tokens": 3, "input_tokens_details": {"cached_tokens": None}}, usage(3, 0, 0, 0, 0, 3)),
        ({"input_tokens": 3, "input_tokens_details": None}, usage(3, 0, 0, 0, 0, 3)),
        ({"input_tokens": True, "output_tokens": "4", "total_tokens": -1}, usage(0, 0, 0, 0, 0, 0)),
        (
            {
                "input_tokens": 9,
                "input_tokens_details": {
                    "cached_tokens": 5,
                    "input_tokens_per_turn": [9],
                    "cached_tokens_per_turn": [5],
                },
                "output_tokens": 7,
                "output_tokens_details": {
                    "reasoning_tokens": 2,
                    "tool_output_tokens": 0,
                    "output_tokens_per_turn": [7],
                },
                "total_tokens": 16,
            },
            usage(9, 5, 0, 7, 2, 16),
        ),
    ],
)
def test_full_usage_of_what_servers_report_is_whole(reported: Any, expected: Json | None) -> None:
    assert full_usage(reported) == expected


def test_add_usage_of_two_rounds_sums_every_count() -> None:
    assert add_usage(usage(1, 2, 3, 4, 5, 6), usage(10, 20, 30, 40, 50, 60)) == usage(11, 22, 33, 44, 55, 66)


def test_add_usage_with_a_round_that_reports_none_keeps_the_other() -> None:
    partial = {"input_tokens": 1, "output_tokens": 2}
    assert add_usage(None, partial) == add_usage(partial, None) == usage(1, 0, 0, 2, 0, 3)
    assert add_usage(None, None) is None


anything = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
reports = st.dictionaries(
    st.sampled_from(list(usage(0, 0, 0, 0, 0, 0))),
    anything | st.dictionaries(st.sampled_from(["cached_tokens", "reasoning_tokens", "x"]), anything),
)


@for_all(reports, reports)
def test_add_usage_of_any_two_reports_is_what_the_sdk_accepts(first: Json, second: Json) -> None:
    total = add_usage(first, second)
    assert total == add_usage(second, first)
    assert ResponseUsage.model_validate(total, strict=True).model_dump(exclude_unset=True) == total
