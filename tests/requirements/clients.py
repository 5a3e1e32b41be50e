"""The clients that must not notice a difference."""

from __future__ import annotations

from requirements.requirement import Requirement, within
from requirements.sources import OPENAI_AGENTS, OPENAI_NODE, OPENAI_PYTHON, bug

REQUIREMENTS = (
    Requirement(
        "client-openai-python",
        OPENAI_PYTHON,
        "OpenAI's Python SDK creates, retrieves, continues, parses structured output and calls tools.",
        ("tests/e2e/test_openai_sdk.py",),
    ),
    Requirement(
        "client-openai-python-streams",
        OPENAI_PYTHON,
        "OpenAI's Python SDK accumulates streams of every outcome.",
        ("tests/e2e/test_openai_sdk_streams.py",),
    ),
    Requirement(
        "client-openai-python-errors",
        OPENAI_PYTHON,
        "OpenAI's Python SDK raises its own exceptions, and retries what may be retried.",
        ("tests/e2e/test_openai_sdk_errors.py",),
    ),
    Requirement(
        "client-openai-typescript",
        OPENAI_NODE,
        "OpenAI's TypeScript SDK does the same.",
        ("tests/e2e/test_typescript_sdk.py",),
    ),
    Requirement(
        "client-openai-agents",
        OPENAI_AGENTS,
        "The OpenAI Agents SDK runs agents with function tools, handoffs, hosted MCP tools and sessions.",
        ("tests/e2e/test_openai_agents.py",),
    ),
    Requirement(
        "client-usage",
        bug("openai/openai-agents-python", 760),
        "SDKs find the usage and the reasoning that they validate.",
        within("tests/e2e/test_openai_sdk.py", "test_reasoning_and_usage_are_read"),
    ),
)
