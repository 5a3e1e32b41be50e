"""Every promise of this project, and the tests that hold it: documentation that a test run checks.

One module for each subject. `tests/requirements_check.py` fails a run when an entry has no test or a test has no
entry. To add a test: find the promise that it proves and name the test there, or its whole file where the file is about
that promise; a promise that is new gets an entry, with its source.

Not promised yet, and so without entries: background responses and resuming their streams, the WebSocket mode, and the
Messages API.
"""

from __future__ import annotations

from requirements import (
    clients,
    compaction,
    conversations,
    envoy,
    failures,
    inference_servers,
    mcp,
    requests,
    responses,
    running,
    security,
    state,
    tenants,
    tools,
    web,
)
from requirements.requirement import Requirement

REQUIREMENTS: tuple[Requirement, ...] = (
    *requests.REQUIREMENTS,
    *responses.REQUIREMENTS,
    *inference_servers.REQUIREMENTS,
    *tools.REQUIREMENTS,
    *mcp.REQUIREMENTS,
    *web.REQUIREMENTS,
    *state.REQUIREMENTS,
    *tenants.REQUIREMENTS,
    *conversations.REQUIREMENTS,
    *compaction.REQUIREMENTS,
    *failures.REQUIREMENTS,
    *security.REQUIREMENTS,
    *clients.REQUIREMENTS,
    *envoy.REQUIREMENTS,
    *running.REQUIREMENTS,
)

__all__ = ["REQUIREMENTS", "Requirement"]
