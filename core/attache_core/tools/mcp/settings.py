"""The `mcp:` section of the gateway file: how the gateway talks to MCP servers, and its bounds."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from attache_core.tools.outbound.settings import OutboundSettings


class McpSettings(OutboundSettings):
    """How MCP servers that clients declare in `tools` are reached. Every bound of it is here."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    list_ttl_s: float = Field(default=300.0, ge=0)
    """How long a server's tool list is reused, in seconds; it is dropped earlier when the server says it changed."""

    connect_timeout_s: float = Field(default=10.0, gt=0)
    """Seconds for opening a session with a server, and again for listing its tools. Calls have a limit of their own, a
    setting of `tool_dispatch`."""

    idle_timeout_s: float = Field(default=300.0, ge=0)
    """Seconds after its last use at which a session with a server is closed."""

    close_timeout_s: float = Field(default=1.0, gt=0)
    """Seconds for taking leave of a server when a session is closed."""

    max_sessions: int = Field(default=64, ge=1)
    """Open sessions per worker process; one is kept for each server and credential. The longest idle one makes room."""

    max_connections_per_session: int = Field(default=100, ge=2)
    """TCP connections of one session. As many calls to one server can be under way at once, but for two where the
    server speaks the stateless protocol: one connection listens for changes, one lists tools. Further calls wait."""

    max_servers_per_request: int = Field(default=64, ge=1)
    """MCP servers that one request may declare."""

    max_tools_per_request: int = Field(default=128, ge=1)
    """Tools, functions included, that one request may give to the model; `allowed_tools` reduces them."""

    max_listed_tools: int = Field(default=2048, ge=1)
    """Tools that one server may list, before `allowed_tools` is applied."""

    max_list_pages: int = Field(default=64, ge=1)
    """Pages that the tool list of one server may have."""

    max_tool_bytes: int = Field(default=64 * 1024, ge=1024)
    """Size of the description and the input schema of one tool, as JSON."""

    max_message_bytes: int = Field(default=16 * 1024 * 1024, ge=1024)
    """What a server may send in answer to one request, framing and progress included."""

    max_output_bytes: int = Field(default=1024 * 1024, ge=1024)
    """What is kept of a tool's result; the model is told when something was left out."""
