"""The clients that must not notice a difference."""

from __future__ import annotations

from requirements.requirement import Requirement, within
from requirements.sources import CODEX, OPENAI_AGENTS, OPENAI_NODE, OPENAI_PYTHON, bug

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
        "client-codex",
        CODEX,
        "Codex CLI runs commands, applies patches, resumes sessions, writes programs and sends agents, set up as "
        "`examples/codex` says; its attempt at a WebSocket is refused at once.",
        ("tests/e2e/test_codex.py",),
    ),
    Requirement(
        "client-codex-tools",
        bug("sgl-project/sglang", 35216),
        "Every kind of tool and item that Codex sends is accepted, and told to a model that knows functions only.",
        (
            *within(
                "tests/core/tools/test_client_types.py",
                "test_tools_that_an_item_adds_are_as_if_declared_and_the_item_is_not_told",
                "test_tool_that_an_item_adds_under_a_declared_name_is_the_declared_one",
            ),
            *within("tests/core/turn/test_model_items.py", "test_what_agents_say_to_each_other_is_told_as_messages"),
            *within("tests/e2e/test_codex.py", "test_model_with_a_name_of_openais_writes_programs_and_sends_agents"),
        ),
        "Tools that an item of the input adds are the client's own, so that nothing stored holds credentials.",
    ),
    Requirement(
        "client-websocket",
        bug("mudler/LocalAI", 11608),
        "A client that asks for a WebSocket first is refused at once and goes on over HTTP.",
        (
            *within(
                "tests/e2e/test_codex.py",
                "test_codex_with_its_own_settings_for_the_model_and_a_websocket_first_works",
            ),
            *within("tests/envoy/compile/test_real_envoy.py", "test_websocket_upgrade_is_refused_at_once"),
        ),
        "OpenAI serves WebSockets; here they are refused with 426.",
    ),
    Requirement(
        "client-usage",
        bug("openai/openai-agents-python", 760),
        "SDKs find the usage and the reasoning that they validate.",
        within("tests/e2e/test_openai_sdk.py", "test_reasoning_and_usage_are_read"),
    ),
)
