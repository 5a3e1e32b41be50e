"""MCP servers: which may be used, how they are spoken to, and what becomes of what they answer."""

from __future__ import annotations

from requirements.requirement import Requirement
from requirements.sources import DESIGN

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
)
