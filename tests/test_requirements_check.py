"""The check that holds requirements and tests together."""

from __future__ import annotations

import pytest

from requirements import REQUIREMENTS, Requirement
from requirements_check import RequirementsCheck, misshapen, prefixes, without_entry, without_test

pytest_plugins = ["pytester"]

PROMISES = [
    Requirement("a-file", "design", "A whole file.", ("tests/test_a.py",)),
    Requirement("a-folder", "design", "A whole folder.", ("tests/more/",)),
    Requirement("a-test", "design", "Two tests.", ("tests/test_b.py::test_one", "tests/test_b.py::TestTwo")),
]
PROVEN = [
    "tests/test_a.py::test_any",
    "tests/more/deep/test_c.py::test_any",
    "tests/test_b.py::test_one",
    "tests/test_b.py::TestTwo::test_in_it",
]


def test_entries_are_well_formed_and_each_has_a_source_and_one_sentence() -> None:
    assert misshapen(REQUIREMENTS) == []
    for requirement in REQUIREMENTS:
        assert requirement.source == "design" or requirement.source.startswith("https://"), requirement.id
        assert requirement.says.endswith("."), requirement.id


def test_entry_names_a_test_by_folder_file_class_or_function() -> None:
    assert prefixes("tests/more/test_c.py::TestIt::test_one") == [
        "tests/more/",
        "tests/",
        "tests/more/test_c.py",
        "tests/more/test_c.py::TestIt",
        "tests/more/test_c.py::TestIt::test_one",
    ]


def test_what_is_proven_is_complete() -> None:
    assert without_entry(PROMISES, PROVEN) == []
    assert without_test(PROMISES, PROVEN, whole=True) == []


@pytest.mark.parametrize("function", ["tests/test_b.py::test_one_more", "tests/moreover/test_d.py::test_x"])
def test_test_that_no_entry_names_is_told(function: str) -> None:
    assert without_entry(PROMISES, [*PROVEN, function]) == [function]


def test_entry_whose_test_is_gone_is_told_where_its_file_was_collected() -> None:
    assert without_test(PROMISES, PROVEN[:3], whole=False) == ["a-test: tests/test_b.py::TestTwo"]
    assert without_test(PROMISES, PROVEN[:1], whole=False) == []
    assert without_test(PROMISES, PROVEN[1:], whole=True) == ["a-file: tests/test_a.py"]


def test_entry_without_a_test_and_id_that_is_used_twice_are_told() -> None:
    entries = [*PROMISES, Requirement("a-file", "design", "Nothing.", ())]
    assert misshapen(entries) == ["a-file: the id is used twice", "a-file: no test"]


@pytest.mark.parametrize(
    ("arguments", "exit_code", "told"),
    [
        (
            [],
            1,
            ["1 tests have no requirement*", "    test_it.py::test_new", "1 requirements name tests*", "    x: *_old"],
        ),
        (["test_it.py"], 1, ["    test_it.py::test_new", "    x: test_it.py::test_old"]),
        (["test_it.py::test_good"], 0, ["*1 passed*"]),
        (["test_it.py::test_new"], 1, ["    test_it.py::test_new"]),
        (["-k", "good"], 1, ["    test_it.py::test_new"]),
    ],
    ids=["everything", "a file", "a good test", "a new test", "deselected"],
)
def test_run_fails_at_its_end_and_says_what_to_add(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    exit_code: int,
    told: list[str],
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeini("[pytest]\ntestpaths = .\n")
    pytester.makepyfile(test_it="def test_good(): pass\ndef test_new(): pass\n")
    promises = [Requirement("x", "design", "It.", ("test_it.py::test_good", "test_it.py::test_old"))]

    result = pytester.runpytest_inprocess(*arguments, plugins=[RequirementsCheck(promises)])

    assert result.ret == exit_code
    result.stdout.fnmatch_lines(told)
