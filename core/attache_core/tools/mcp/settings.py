"""The `mcp:` section of the gateway file: how the gateway talks to MCP servers, and its bounds."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from attache_core.tools.mcp.named_server import NamedServerSettings
from attache_core.tools.outbound.settings import OutboundSettings
from attache_core.types.mcp_servers import KnownServers
from attache_core.types.shape import Name


class McpSettings(OutboundSettings):
    """How MCP servers are reached. The outbound keys are about those that requests bring; all bounds are here."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    servers: dict[Name, NamedServerSettings] = Field(default_factory=dict)
    """Servers by the `server_label` by which requests declare them, without their URL."""

    allow_request_servers: bool = True
    """Whether requests may bring servers of their own, by a `server_url`."""

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
    """What a server may send in answer to one request, framing and progress included. Over HTTP with SSE, where answers
    share a stream: between two of them, for each request that waits for one."""

    max_output_bytes: int = Field(default=1024 * 1024, ge=1024)
    """What is kept of a tool's result; the model is told when something was left out."""

    @property
    def known_servers(self) -> KnownServers:
        """What a check of requests must know of all that."""
        return KnownServers(tuple(self.servers), only_these=not self.allow_request_servers)
