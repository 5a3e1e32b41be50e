"""The same tests for split and fused placement, JSON and SSE."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from attache_core.json_codec import Json
from e2e.node_packages import has_node
from e2e.stage import Stage, open_stage
from postgresql_server import PostgresqlServer

PLACEMENTS = ("split", "fused")
NODE_TESTS = ("test_codex.py", "test_typescript_sdk.py")
WITHOUT_NODE = "`node` and `npm` are not both on this machine, so these were left out: "


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not has_node():
        left_out = [item for item in items if item.path.name in NODE_TESTS]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    for item in items:
        if "/e2e/" in item.path.as_posix():
            item.add_marker(pytest.mark.e2e)
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    deselected = terminalreporter.stats.get("deselected", [])
    left_out = {item.path.name for item in deselected} & set(NODE_TESTS)
    if left_out and not has_node():
        terminalreporter.write_line(WITHOUT_NODE + ", ".join(sorted(left_out)), yellow=True)


@pytest.fixture(scope="session", params=PLACEMENTS)
def placement(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[False, True], ids=["json", "sse"])
def stream(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_stage(placement: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    async with open_stage(placement, tmp_path_factory.mktemp(placement)) as stage:
        yield stage


@pytest_asyncio.fixture(scope="session", loop_scope="session", params=["sqlite", "postgresql"])
async def shared_state_stage(
    request: pytest.FixtureRequest,
    placement: str,
    postgresql: PostgresqlServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Stage]:
    folder = tmp_path_factory.mktemp(placement)
    store: Json = {}
    if request.param == "postgresql":
        store = {"postgresql": postgresql, "storage_url": postgresql.new_database()}
    async with open_stage(placement, folder, **store) as stage:
        yield stage


@pytest.fixture
def state_stage(shared_state_stage: Stage) -> Stage:
    """As `stage`, on SQLite and on PostgreSQL, for tests of what is remembered."""
    shared_state_stage.model.play()
    return shared_state_stage


@pytest.fixture
def stage(shared_stage: Stage) -> Stage:
    """A running gateway, shared by the tests of one placement; its model's script is the test's own."""
    shared_stage.model.play()
    return shared_stage
