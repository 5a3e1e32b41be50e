"""YAML with lines, and environment variables in it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from attache_core.errors import ConfigError
from attache_envoy.gateway.document import read_document
from attache_envoy.gateway.problems import Problem

ENVIRON = {"HOST": "example.net", "WORKERS": "3", "EMPTY": ""}


def value_of(text: str) -> Any:
    document = read_document(text, "file.yaml", ENVIRON)
    assert document.problems == ()
    return document.value


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("http://${HOST}:80", "http://example.net:80"),
        ("${WORKERS}", 3),
        ("'${WORKERS}'", "3"),
        ('"${WORKERS}"', "3"),
        ("${NOWHERE:-2.5}", 2.5),
        ("${EMPTY:-full}", "full"),
        ("${EMPTY}", None),
        ("${NOWHERE:-}x", "x"),
        ("$${HOST}", "${HOST}"),
        ("$HOST ${HOST}", "$HOST example.net"),
        ("${not a name}", "${not a name}"),
        ("a: 1", {"a": 1}),
    ],
)
def test_variables_are_put_in_before_the_type_is_decided(written: str, read: object) -> None:
    assert value_of(written) == read


def test_missing_variable_is_a_problem_that_says_how_to_give_a_default() -> None:
    message = "the environment variable NOWHERE is not set. Set it, or give a default: ${NOWHERE:-…}."
    assert read_document("a: {b: '${NOWHERE}'}", "file.yaml", ENVIRON).problems == (Problem(("a", "b"), message),)


def test_every_key_and_item_has_its_line() -> None:
    document = read_document("a:\n  - x\n  - {y: 1,\n     z: 2}\n\nb: 1\n", "file.yaml", {})
    assert document.lines == {
        (): 1,
        ("a",): 1,
        ("a", 0): 2,
        ("a", 1): 3,
        ("a", 1, "y"): 3,
        ("a", 1, "z"): 4,
        ("b",): 6,
    }


def test_alias_is_read_as_what_it_names() -> None:
    assert value_of("a: &x {k: [1]}\nb: *x\n") == {"a": {"k": [1]}, "b": {"k": [1]}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1", "file.yaml:1: not valid YAML: expected ',' or ']', but got '<stream end>'."),
        ("a: 1\n b: 2\n", "file.yaml:2: not valid YAML: mapping values are not allowed here."),
        ("a: *nowhere", "file.yaml:1: not valid YAML: found undefined alias 'nowhere'."),
        ("--- 1\n--- 2\n", "file.yaml:2: not valid YAML: but found another document."),
    ],
)
def test_text_that_is_not_yaml_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_document(text, "file.yaml", {})
    assert refused.value.message == message


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: &x [*x]", Problem(("a", 0), "an alias must not stand inside what it names.")),
        ("1: a", Problem((), "keys are strings: put this one in quotes.", 1)),
        ("a: 1\na: 2", Problem(("a",), "this key was already given in line 1.", 2)),
        ("a: !!int x", Problem(("a",), "'x' is not a value of the type tag:yaml.org,2002:int.")),
        ("a: !mine x", Problem(("a",), "'x' is not a value of the type !mine.")),
    ],
)
def test_what_cannot_be_read_is_a_problem_at_its_place(text: str, problem: Problem) -> None:
    assert read_document(text, "file.yaml", {}).problems == (problem,)


plain_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet=st.characters(codec="ascii", exclude_characters="$")),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("abc", min_size=1, max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=30, deadline=None)
@given(plain_values)
def test_what_yaml_writes_is_read_back(value: object) -> None:
    assert value_of(yaml.safe_dump(value)) == value
