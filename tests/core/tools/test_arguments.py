"""What the model writes as arguments, and what of it a tool may get."""

from __future__ import annotations

import json
import warnings
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attache_core.json_codec import Json, encode
from attache_core.tools.arguments import MAX_NESTING, faults, parse_arguments


def of(**properties: Json) -> Json:
    return {"type": "object", "properties": properties}


TEXT: Json = {"type": "string"}


@pytest.mark.parametrize("text", ["", "  \n"])
def test_no_text_is_no_arguments(text: str) -> None:
    assert parse_arguments(text, of(a=TEXT)) == {}


@pytest.mark.parametrize(
    ("value", "schema", "fault"),
    [
        ({}, {"required": ["a", 1]}, "'a' is missing"),
        ({"a": {}}, of(a={"required": ["b"]}), "'a.b' is missing"),
        ({"a": 1}, of(a=TEXT), "a must be of type string"),
        ({"a": True}, of(a={"type": "integer"}), "a must be of type integer"),
        ({"a": 1.5}, of(a={"type": ["integer", "null"]}), "a must be of type integer or null"),
        ({"a": ["x", 1]}, of(a={"type": "array", "items": TEXT}), "a[1] must be of type string"),
        ({"a": "x"}, of(a={"enum": ["y", None]}), 'a must be one of ["y",null]'),
        ({"b": 1}, {**of(a=TEXT), "additionalProperties": False}, "'b' is not one of its fields"),
        ([], {"type": "object"}, "the object must be of type object"),
    ],
)
def test_what_is_plainly_not_of_the_schema_is_said(value: Any, schema: Json, fault: str) -> None:
    assert next(faults(value, schema)) == fault


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        ({"a": 1.0, "b": 10**40}, of(a={"type": "integer"}, b={"type": "integer"})),
        ({"a": 1}, of(a={"$ref": "#/$defs/x", "type": "string"})),
        ({"x_a": 1}, {"patternProperties": {"^x_": {}}, "additionalProperties": False}),
        ({"a": 1}, {"anyOf": [of(a={})], "additionalProperties": False}),
        ({"a": 1}, of(a={"enum": [True, 1]})),
        ({"a": [1, "x"]}, of(a={"prefixItems": [{}], "items": TEXT})),
        ({"a": 1}, of(a={"type": "of_tomorrow"})),
        ({"a": 1}, {"properties": 1, "required": "a", "type": 7}),
        ({"a": 1}, "no schema"),
    ],
)
def test_what_is_not_plain_is_passed_over(value: Any, schema: Any) -> None:
    assert list(faults(value, schema)) == []


@pytest.mark.parametrize(
    ("element", "schema"),
    [
        ("x7999", {"enum": [f"x{number}" for number in range(8000)]}),
        ({}, {"required": [1] * 20_000}),
        ("x", {"type": ["null"] * 10_000 + ["string"]}),
        ({"y": 1}, {"anyOf": [], "additionalProperties": False, **{f"x_{number}": 1 for number in range(5000)}}),
    ],
)
def test_many_values_of_a_long_schema_are_looked_at_to_a_bound(element: Any, schema: Json) -> None:
    """Each value for itself is cheap to look at; all of them would take a minute."""
    value: Json = {"b": 1, "a": [element] * 20_000}
    assert list(faults(value, of(a={"type": "array", "items": schema}, b=TEXT))) == ["b must be of type string"]


def test_value_of_any_depth_is_looked_at_to_a_bound() -> None:
    schema: Json = {"type": "array"}
    schema["items"] = schema
    value: list[Any] = []
    for _ in range(500):
        value = [value]
    assert list(faults(value, schema)) == []


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2) | st.sampled_from(["", "a", "b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
kinds = st.sampled_from(["object", "array", "string", "number", "integer", "boolean", "null"])
schemas = st.recursive(
    st.fixed_dictionaries(
        {},
        optional={
            "type": kinds | st.lists(kinds, min_size=1, max_size=3, unique=True),
            "enum": st.lists(json_values, min_size=1, max_size=3),
            "required": st.lists(st.sampled_from("abc"), unique=True, max_size=2),
            "additionalProperties": st.booleans(),
        },
    ),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "type": kinds,
            "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
            "items": inner,
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "b"]), inner, max_size=1),
            "additionalProperties": st.booleans() | inner,
        },
    ),
    max_leaves=5,
)


@settings(max_examples=300, deadline=None)
@given(json_values, schemas)
def test_what_a_full_validator_accepts_is_accepted(value: Any, schema: Json) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        accepted = jsonschema.Draft202012Validator(schema).is_valid(value)
    if accepted:
        assert list(faults(value, schema)) == []


@pytest.mark.parametrize("text", ['{"a": "\\ud800"}', '{"a": "\ud800"}', '{"\udfff": 1}', '{"a": ["\\udcff\\ud83d"]}'])
def test_half_of_a_surrogate_pair_is_refused_however_it_is_written(text: str) -> None:
    with pytest.raises(ValueError, match="half of a surrogate pair"):
        parse_arguments(text)


@settings(deadline=None)
@given(
    st.text(alphabet=st.characters(), max_size=40)
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec=None)), inner),
    ).map(json.dumps)
    | st.lists(st.sampled_from('{}[]":,\\ud8 0aeE+-.1NaInfity\n\x00\ud800\ufeff')).map("".join)
)
def test_any_text_is_arguments_that_every_tool_can_be_sent_or_is_refused(text: str) -> None:
    try:
        arguments = parse_arguments(text)
    except ValueError:
        return
    assert isinstance(arguments, dict)
    assert parse_arguments(json.dumps(arguments, allow_nan=False, ensure_ascii=False)) == arguments
    encode(arguments).decode()
    json.dumps(arguments, ensure_ascii=False).encode()


def test_arguments_go_on_as_they_were_written() -> None:
    assert encode(parse_arguments('{"b": 1, "a": {"c": []}}', of(a={}))) == b'{"b":1,"a":{"c":[]}}'


@pytest.mark.parametrize("digits", [20, 400])
def test_integer_of_any_size_is_an_integer(digits: int) -> None:
    assert parse_arguments(f'{{"a": {10**digits}}}', of(a={"type": "integer"})) == {"a": 10**digits}


def test_schema_that_names_no_type_refuses_nothing() -> None:
    assert parse_arguments('{"a": 1}', of(a={"type": []})) == {"a": 1}


@pytest.mark.parametrize("depth", [MAX_NESTING + 1, 1020])
def test_arguments_that_could_not_be_written_again_are_refused(depth: int) -> None:
    """Also where they hold a pair of surrogates, for which they are written to be looked at."""
    nested = "[" * depth + "]" * depth
    for text in (f'{{"a": {nested}}}', f'{{"b": "\\ud83d\\ude00", "a": {nested}}}'):
        with pytest.raises(ValueError, match="not valid JSON"):
            parse_arguments(text)


def test_brackets_in_a_text_are_no_nesting() -> None:
    assert parse_arguments('{"a": "' + "[{" * 1000 + '"}') == {"a": "[{" * 1000}
