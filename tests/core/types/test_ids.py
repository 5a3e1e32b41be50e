"""Ids: their grammar, their prefixes, and that they do not repeat."""

from __future__ import annotations

import re
from typing import get_args

import pytest

from attache_core.types.ids import IdPrefix, item_id, item_prefix, new_id
from attache_core.types.items import ITEM_TYPES


@pytest.mark.parametrize("prefix", get_args(IdPrefix))
def test_new_id_of_every_prefix_has_the_grammar_that_providers_accept(prefix: IdPrefix) -> None:
    created = new_id(prefix)
    assert re.fullmatch(rf"{prefix}_[0-9a-f]{{48}}", created)
    assert len(created) <= 64


def test_new_id_called_often_never_repeats() -> None:
    assert len({new_id("msg") for _ in range(10_000)}) == 10_000


@pytest.mark.parametrize(
    ("item_type", "prefix"),
    [
        ("message", "msg"),
        ("reasoning", "rs"),
        ("function_call", "fc"),
        ("function_call_output", "fco"),
        ("custom_tool_call", "ctc"),
        ("mcp_call", "mcp"),
        ("mcp_list_tools", "mcpl"),
        ("web_search_call", "ws"),
        ("code_interpreter_call", "ci"),
        ("tool_search_call", "tsc"),
        ("shell_call", "sh"),
        ("from_the_future", "item"),
    ],
)
def test_item_prefix_of_a_type_is_the_one_that_openai_gives(item_type: str, prefix: str) -> None:
    assert item_prefix(item_type) == prefix
    assert item_id(item_type).startswith(f"{prefix}_")


def test_item_prefix_of_different_types_of_output_differs() -> None:
    known = [item_prefix(item_type) for item_type in ITEM_TYPES if item_prefix(item_type) != "item"]
    assert len(set(known)) == len(known)
