"""MCP servers: which may be used, how they are spoken to, and what becomes of what they answer."""

from __future__ import annotations

from requirements.requirement import Requirement
from requirements.sources import DESIGN, MCP, MCP_PROGRESS, bug

_MCP = "tests/core/tools/mcp"

REQUIREMENTS = (
    Requirement(
        "mcp-named-servers",
        DESIGN,
        "A server of the gateway file is declared by its label; its address and credentials are the operator's alone.",
        (
            f"{_MCP}/test_named_servers.py",
            "tests/core/types/test_mcp_servers.py",
            "tests/envoy/gateway/test_mcp_section.py",
        ),
        "OpenAI's API names its own servers by `connector_id`; here the operator's have a `server_label`.",
    ),
    Requirement(
        "mcp-server-that-fails",
        bug("meta-llama/llama-stack", 3107),
        "A server that fails to list or to be called, in whatever way and over either transport, is an item with an "
        "error; the model is told, the response completes, and no call is sent twice.",
        ("tests/core/turn/test_mcp_matrix.py",),
    ),
    Requirement(
        "mcp-progress",
        MCP_PROGRESS,
        "What a tool reports of its progress is a sign of life of its call, bounded in number; it buys no time.",
        ("tests/core/tools/test_running_call.py", "tests/core/turn/test_mcp_progress.py"),
        "OpenAI's API sends `response.mcp_call.in_progress` once; here each report that is told on is one more.",
    ),
    Requirement(
        "mcp-transports",
        MCP,
        "A server of either transport is spoken to over the one that it has, which is found out once; the older one "
        "sends nothing to another origin, and is bounded and pooled as the newer one is.",
        (f"{_MCP}/test_transports.py",),
    ),
)
