"""The web: where tools may reach, and what a search and a page come to."""

from __future__ import annotations

from requirements.requirement import Requirement
from requirements.sources import HTTP, bug

_OUTBOUND = "tests/core/tools/outbound"

REQUIREMENTS = (
    Requirement(
        "web-outbound-policy",
        bug("modelcontextprotocol/servers", 4838),
        "A URL that somebody gave is judged in every spelling, resolved once and pinned; refusals name the setting.",
        (f"{_OUTBOUND}/test_policy.py",),
    ),
    Requirement(
        "web-exchanges",
        HTTP,
        "An exchange is bounded; each redirect is judged like the first URL, and credentials stay with its origin.",
        (f"{_OUTBOUND}/test_fetch.py",),
    ),
    Requirement(
        "web-secrets",
        bug("BerriAI/litellm", 35678),
        "A secret is shown by no text form of what holds it, and dumped only for a process of the gateway's own.",
        (f"{_OUTBOUND}/test_secret.py",),
    ),
)
