"""The `attache` command inside the test's own process: what a new process does, without its second of imports."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from attache_envoy.cli import main as command
from attache_envoy.cli import up
from attache_process import Finished


@pytest.fixture
def attache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Finished]:
    """`attache(*arguments)`: run the command to its end, in an empty directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    # A process's own business: here it would change the logs of every test after this one. They go nowhere instead.
    monkeypatch.setattr(up, "configure_logs", lambda: None)

    def run(*arguments: str) -> Finished:
        monkeypatch.setattr(sys, "argv", ["attache", *arguments])
        with capture_logs(), pytest.raises(SystemExit) as ended:
            command.main()
        printed = capsys.readouterr()
        return Finished(int(ended.value.code or 0), printed.out, printed.err)

    return run
