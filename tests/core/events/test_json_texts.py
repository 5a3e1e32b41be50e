from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attache_core.events.json_texts import same_json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"a":1,"b":[2,{}]}', '{ "a": 1, "b": [ 2, { } ] }\n'),
        ('{"a":1,"b":2}', '{"b":2,"a":1}'),
        ('{"a":1}', '{"a":1.0}'),
        ('{"a":1e2}', '{"a":100}'),
        ('{"a":0.1}', '{"a":0.1000000000000000055}'),
        ('{"a":"\\u00e9\\/"}', '{"a":"é/"}'),
        ('{"a":"\\ud83d\\ude00"}', '{"a":"😀"}'),
        ('{"a":1,"a":2}', '{"a": 1, "a": 2}'),
        ('"\\ud83d"', ' "\\ud83d"'),
    ],
)
def test_texts_that_differ_in_spelling_alone_are_the_same(one: str, other: str) -> None:
    assert same_json(one, other)
    assert same_json(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1", "true"),
        ("0", "false"),
        ("0", "null"),
        ("1", '"1"'),
        ("[]", "{}"),
        ('{"a":1}', '[["a",1]]'),
        ('{"a":1}', '{"":[["a",1]]}'),
        ("12345678901234567890", "12345678901234567891"),
        ("9007199254740993", "9007199254740992"),
        ("[1,2]", "[2,1]"),
        ('{"a":1,"a":2}', '{"a":2}'),
        ('{"a":1,"a":2}', '{"a":2,"a":1}'),
        ('{"a":"b c"}', '{"a":"b  c"}'),
        ("{}", '{"a":1}'),
        ('{}{"a":1}', '{"a":1}'),
        ('{"a":', '{"a": '),
        ("", " "),
        ("NaN", " NaN"),
        ("1e999", " 1e999"),
        ("[" * 100_000, " " + "[" * 100_000),
    ],
)
def test_texts_that_a_reader_could_tell_apart_are_not_the_same(one: str, other: str) -> None:
    assert not same_json(one, other)
    assert not same_json(other, one)


@given(JSON, JSON)
def test_two_values_are_the_same_when_they_are_written_the_same(one: object, other: object) -> None:
    assert same_json(json.dumps(one), json.dumps(one, indent=1, ensure_ascii=False))
    if same_json(json.dumps(one), json.dumps(other)):
        assert one == other
