"""Holds `tests/requirements` and the tests together, in every run: no entry without a test, no test without an entry.

A pytest plugin; `tests/conftest.py` registers it. It looks at what was collected, before anything is deselected, costs
milliseconds, and fails the run at its end, so that the tests themselves still run. A run of some files is asked only
about them; a run of single tests, or of those that failed last, only whether each has an entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from requirements.requirement import Requirement

WHERE = "tests/requirements"


def function_id(node_id: str) -> str:
    """The node id of a test without its parameters."""
    return node_id.partition("[")[0]


def prefixes(function: str) -> list[str]:
    """All by which an entry may name a test: its folders, its file, its class, itself."""
    file, *names = function.split("::")
    folders = [f"{folder}/" for folder in Path(file).parents if folder != Path()]
    return [*folders, *("::".join([file, *names[:count]]) for count in range(len(names) + 1))]


def without_entry(requirements: Iterable[Requirement], collected: Iterable[str]) -> list[str]:
    """The collected tests (functions) that no requirement names."""
    named = {test for requirement in requirements for test in requirement.tests}
    return [function for function in collected if named.isdisjoint(prefixes(function))]


def without_test(requirements: Iterable[Requirement], collected: Iterable[str], *, whole: bool) -> list[str]:
    """Each test that a requirement names and that is not there, as `ID: test`.

    `whole` is whether everything was collected; else only the files that were are asked about.
    """
    functions = list(collected)
    known = {prefix for function in functions for prefix in prefixes(function)}
    files = {function.partition("::")[0] for function in functions}
    return [
        f"{requirement.id}: {test}"
        for requirement in requirements
        for test in requirement.tests
        if test not in known and (whole or test.partition("::")[0] in files)
    ]


def misshapen(requirements: Sequence[Requirement]) -> list[str]:
    """What is wrong with the entries themselves."""
    ids = [requirement.id for requirement in requirements]
    twice = [f"{name}: the id is used twice" for name in dict.fromkeys(ids) if ids.count(name) > 1]
    return twice + [f"{requirement.id}: no test" for requirement in requirements if not requirement.tests]


def report(requirements: Sequence[Requirement], functions: Sequence[str], *, files: bool, whole: bool) -> list[str]:
    """What to say, line by line; nothing when all is well. `files` is whether only whole files were collected."""
    lines = [f"{WHERE}: {problem}" for problem in misshapen(requirements)]
    missing = without_entry(requirements, functions)
    if missing:
        lines += [
            f"{len(missing)} tests have no requirement. Name each in an entry of {WHERE}, or add an entry for it:",
            *(f"    {function}" for function in missing),
        ]
    gone = without_test(requirements, functions, whole=whole) if files else []
    if gone:
        lines += [
            f"{len(gone)} requirements name tests that are not there. Rename them in {WHERE}, or write them:",
            *(f"    {test}" for test in gone),
        ]
    return lines


class RequirementsCheck:
    """The plugin; see the module docstring."""

    def __init__(self, requirements: Sequence[Requirement]) -> None:
        self._requirements = requirements
        self._report: list[str] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        functions = list(dict.fromkeys(function_id(item.nodeid) for item in items))
        single = any("::" in argument for argument in config.args)
        again = bool(config.getoption("lf", default=False))
        whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS and not config.getoption(
            "ignore", default=None
        )
        self._report = report(self._requirements, functions, files=not (single or again), whole=whole and not again)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._report and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._report:
            terminalreporter.section("requirements", red=True)
            for line in self._report:
                terminalreporter.write_line(line)
