"""What the tests of tools share."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import pytest

from attache_core.json_codec import Json
from attache_core.tools.mcp.settings import McpSettings

Declare = Callable[..., Json]


@pytest.fixture
def declare() -> Declare:
    """A declaration of an MCP server, as a client writes it."""

    def declaration(url: str, label: str = "demo", **fields: Any) -> Json:
        return {"type": "mcp", "server_label": label, "server_url": url, "require_approval": "never", **fields}

    return declaration


@pytest.fixture
def loopback() -> McpSettings:
    """Settings with which servers of tests can be reached."""
    return McpSettings(allow_private_addresses=True, connect_timeout_s=5)


@pytest.fixture
def refusing_url() -> str:
    """A URL on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    return f"http://127.0.0.1:{port}/mcp"
