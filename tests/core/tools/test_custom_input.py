"""The input of a custom tool, out of function arguments that come in any pieces."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attache_core.tools.client.custom_input import CustomInput


def read(*pieces: str) -> str:
    reader = CustomInput()
    return "".join(map(reader.feed, pieces)) + reader.close()


@settings(max_examples=200)
@given(
    text=st.text(max_size=30) | st.text('\\ud8"', max_size=12),
    ascii_only=st.booleans(),
    indent=st.sampled_from([None, 2]),
    data=st.data(),
)
def test_any_cut_of_the_arguments_gives_the_input(
    text: str, ascii_only: bool, indent: int | None, data: st.DataObject
) -> None:
    arguments = json.dumps({"input": text}, ensure_ascii=ascii_only, indent=indent)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(arguments)), max_size=8)))
    pieces = [arguments[start:end] for start, end in zip([0, *cuts], [*cuts, len(arguments)], strict=True)]

    assert read(*pieces) == text


def test_text_comes_out_while_it_comes_in() -> None:
    reader = CustomInput()

    assert [reader.feed(piece) for piece in ('{"in', 'put": "a', "b\\", 'n"}')] == ["", "a", "b", "\n"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", ""),
        ("{}", "{}"),
        ("*** Begin Patch", "*** Begin Patch"),
        ('{"other": 1}', '{"other": 1}'),
        ('{"inp', '{"inp'),
        ('{"input": "never ended', "never ended"),
        ('{"input": "a\nb"}', "a\nb"),
        ('{"input": "a\\', "a\\"),
        ('{"input": "C:\\Windows\\done"}', "C:\\Windows\\done"),
        ('{"input": "\\ud83d alone, and more"}', "\ud83d alone, and more"),
        ('{"input": "\\\\ud83d\\\\"}', "\\ud83d\\"),
        ('{"input": "\\ud83d\\ude00"} ', "\U0001f600"),
        (" " * 70 + '{"input": "x"}', " " * 70 + '{"input": "x"}'),
        ('{"input": "' + "\\q" * 5000 + '"}', "\\q" * 5000),
    ],
)
def test_what_is_not_quite_json_is_not_lost(arguments: str, expected: str) -> None:
    assert read(arguments) == expected
    assert read(*arguments) == expected
