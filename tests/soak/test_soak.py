"""The soak in a short form; `make soak` is the whole of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from postgresql_server import running_postgresql
from soak.plan import SHORT, SHORT_WITH_ENVOY, Plan
from soak.run import Result, run_soak


@pytest.mark.e2e
async def test_short_soak_on_sqlite_leaves_what_was_told(tmp_path: Path) -> None:
    check(SHORT_WITH_ENVOY, await run_soak(SHORT_WITH_ENVOY, tmp_path))


@pytest.mark.e2e
async def test_short_soak_on_postgresql_leaves_what_was_told(tmp_path: Path) -> None:
    plan = replace(SHORT, on_disconnect="finish")
    with running_postgresql() as server:
        check(plan, await run_soak(plan, tmp_path, server))


def check(plan: Plan, result: Result) -> None:
    assert result.faults == []
    assert result.told["completed"] > 0
    assert result.killed == Counter(plan.kills)
