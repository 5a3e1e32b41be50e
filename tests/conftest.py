"""Which placements a run tests: `--placement fused` leaves out what only an Envoy for split placement can do.

A test is for the placement in its parameter `placement`, if it has one, and for those of its marker `placements`; it
runs when all of them are chosen. A test that is for none runs always.

And that every test proves a requirement, and every requirement has a test: see `requirements_check`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from attache_envoy.compile.envoy_version import OLDEST
from postgresql_server import PostgresqlServer, running_postgresql
from requirements import REQUIREMENTS
from requirements_check import RequirementsCheck


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgresqlServer]:
    """One server for all tests that need one, each with a database of its own."""
    with running_postgresql() as server:
        yield server


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--placement", action="append", choices=list(OLDEST), help="test this placement only; may be repeated"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "placements(*names): needs an Envoy that is right for these placements")
    if config.rootpath == Path(__file__).parents[1]:
        config.pluginmanager.register(RequirementsCheck(REQUIREMENTS), "requirements")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    chosen = set(config.getoption("--placement") or OLDEST)
    left_out = [item for item in items if not _placements(item) <= chosen]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def _placements(item: pytest.Item) -> set[str]:
    marked = {name for marker in item.iter_markers("placements") for name in marker.args}
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    return marked | ({str(parameters["placement"])} if "placement" in parameters else set())
