"""What a process must not import before it serves: each of these takes as long as all else that it imports."""

from __future__ import annotations

import subprocess
import sys

import pytest

LOAD_FILTERS = "from attache_filters.sdk.registry import load_filters; load_filters()"


@pytest.mark.parametrize(
    ("program", "not_imported"),
    [
        (f"import attache_envoy.cli.main; {LOAD_FILTERS}", {"mcp", "sqlalchemy", "grpc", "envoy_data_plane"}),
        (
            f"import attache_envoy.run.worker; {LOAD_FILTERS}; import attache_filters.extproc.transport.lean.server",
            {"mcp", "alembic", "envoy_data_plane", "grpc"},
        ),
    ],
    ids=["command", "worker"],
)
def test_a_start_imports_nothing_that_it_does_not_need(program: str, not_imported: set[str]) -> None:
    report = f"{program}; import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, timeout=30, check=True)
    assert set(done.stdout.split()) & not_imported == set()
