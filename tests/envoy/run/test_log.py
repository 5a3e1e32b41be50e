"""The form and the level of logs, as another process sees them."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

PROGRAM = """
import logging, structlog
from attache_envoy.run.log import configure_logs
configure_logs()
log = structlog.get_logger("here")
log.debug("quiet")
log.info("told", worker=1, path=type("Odd", (), {"__str__": lambda self: "odd"})())
logging.getLogger("library").info("chatter")
logging.getLogger("library").warning("trouble in %s", "library")
try:
    1 / 0
except ZeroDivisionError:
    log.exception("bug")
"""


def logged(level: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "ATTACHE_LOG": level}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=30, check=False
    )


@pytest.mark.parametrize(
    ("level", "events"),
    [
        ("debug", ["quiet", "told", "trouble in library", "bug"]),
        ("info", ["told", "trouble in library", "bug"]),
        ("error", ["bug"]),
    ],
)
def test_logs_are_json_lines_of_the_level_that_is_set(level: str, events: list[str]) -> None:
    done = logged(level)
    assert done.stdout == ""
    assert [json.loads(line)["event"] for line in done.stderr.splitlines()] == events


def test_a_log_line_carries_level_time_and_values() -> None:
    line, *_, last = (json.loads(text) for text in logged("info").stderr.splitlines())
    assert line.pop("timestamp").endswith("Z")
    assert line == {"event": "told", "level": "info", "worker": 1, "path": "odd"}
    assert "ZeroDivisionError" in last["exception"]


def test_an_unknown_level_is_refused() -> None:
    assert "ConfigError: ATTACHE_LOG must be one of debug, info, warning, error." in logged("loud").stderr
