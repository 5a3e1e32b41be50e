"""Running it: the command, the processes, the logs; and what this project measures and tests itself with."""

from __future__ import annotations

from requirements.requirement import Requirement
from requirements.sources import DESIGN

_RUN = "tests/envoy/run"
_TESTING = "tests/core/testing"

REQUIREMENTS = (
    Requirement(
        "run-command",
        DESIGN,
        "The command says what it does and what is wrong, without a traceback, and leaves nothing behind.",
        ("tests/envoy/cli/",),
    ),
    Requirement(
        "run-supervision",
        DESIGN,
        "It is never half a gateway: what dies is replaced or ends it, and a drain lets turns end.",
        (f"{_RUN}/test_supervisor.py", f"{_RUN}/test_service.py", f"{_RUN}/test_deaths.py", f"{_RUN}/test_failure.py"),
    ),
    Requirement(
        "run-processes",
        DESIGN,
        "No child outlives its parent, and no file or socket is left.",
        (f"{_RUN}/test_child_process.py", f"{_RUN}/test_run_dir.py"),
    ),
    Requirement(
        "run-start",
        DESIGN,
        "It starts fast, with the right Envoy, on the address that was asked for, and says when it is ready.",
        (
            f"{_RUN}/test_envoy_binary.py",
            f"{_RUN}/test_imports.py",
            f"{_RUN}/test_listen_address.py",
            f"{_RUN}/test_readiness.py",
        ),
    ),
    Requirement(
        "run-workers",
        DESIGN,
        "Turns are spread evenly over the workers, one that is stuck holds up its own alone, and `auto` counts CPUs.",
        ("tests/e2e/test_workers.py", "tests/envoy/gateway/test_cpus.py"),
    ),
    Requirement(
        "run-collector",
        DESIGN,
        "The collector looks at nothing while a worker starts, never at what it started with, and seldom at the rest.",
        (f"{_RUN}/test_collector.py",),
    ),
    Requirement(
        "run-http1",
        DESIGN,
        "A connection of the HTTP client carries one whole response after another, or ends, whatever a server sends.",
        ("tests/core/http1/",),
    ),
    Requirement(
        "run-logs",
        DESIGN,
        "Logs are JSON lines of the level that is set, and what children print comes out whole, line by line.",
        (f"{_RUN}/test_log.py", f"{_RUN}/test_output.py"),
    ),
    Requirement(
        "test-model-server",
        DESIGN,
        "The scripted model server says what its script says, in the form of each inference server's recordings.",
        (
            f"{_TESTING}/test_model_script.py",
            f"{_TESTING}/test_model_server.py",
            f"{_TESTING}/test_model_wire.py",
            f"{_TESTING}/test_model_chat.py",
        ),
    ),
    Requirement(
        "test-mcp-server",
        DESIGN,
        "The MCP server of the tests and of the demo runs by itself.",
        (f"{_TESTING}/test_mcp_server.py",),
    ),
    Requirement(
        "test-requirements",
        DESIGN,
        "Every promise has a test, and every test proves a promise.",
        ("tests/test_requirements_check.py",),
    ),
    Requirement(
        "bench",
        DESIGN,
        "A benchmark counts what really happened, errors among it, and its tables show it.",
        ("tests/bench/",),
    ),
)
