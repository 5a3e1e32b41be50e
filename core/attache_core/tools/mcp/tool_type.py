"""The tool type `mcp`: a server's tools, discovered when a turn begins and executed by the gateway.

Knows declarations, listings and calls; is unaware of sessions, which are `servers`', and of requests. A call is only
ever sent to the server that declared its tool.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from attache_core.errors import ClientError
from attache_core.events.model_events import ModelEvent
from attache_core.json_codec import Json
from attache_core.tools.function_tool import function_tool
from attache_core.tools.gateway_tool import CallMade, CallProgress, CallResult, GatewayTool, Report
from attache_core.tools.mcp.declaration import McpDeclaration, may_need_approval, mcp_declaration
from attache_core.tools.mcp.failure import McpServerError
from attache_core.tools.mcp.items import McpListing, call_begun, call_ended, call_progressed, tell_call
from attache_core.tools.mcp.server import McpServer
from attache_core.tools.mcp.servers import McpServers
from attache_core.tools.tool_type import Offer, OfferedTool, ToolType, described
from attache_core.types.tools import SHAPES


@dataclass(frozen=True, slots=True)
class McpTool(GatewayTool):
    """A tool of an MCP server."""

    server_label: str
    name: str
    server: McpServer
    servers: McpServers
    asks: bool = True

    @property
    def needs_approval(self) -> bool:
        """As its declaration says."""
        return self.asks

    @property
    def target(self) -> str:
        """The server's URL and credentials."""
        return self.server.key

    async def call(self, arguments: Json) -> CallResult:
        """Call it on the server that declared it."""
        return await self.servers.call_tool(self.server, self.name, arguments)

    async def call_reporting(self, arguments: Json, report: Report) -> CallResult:
        """The same, passing on what the server says of its progress."""
        return await self.servers.call_tool(self.server, self.name, arguments, report)

    def begun(self, call: CallMade) -> list[ModelEvent]:
        """An `mcp_call` item in progress, with its arguments."""
        return call_begun(call, self.server_label, self.name)

    def progressed(self, call: CallMade, progress: CallProgress) -> list[ModelEvent]:
        """The item is still in progress."""
        del progress
        return call_progressed(call)

    def ended(self, call: CallMade, result: CallResult) -> list[ModelEvent]:
        """The item with its output or its error."""
        return call_ended(call, self.server_label, self.name, result)


class McpToolType(ToolType):
    """MCP servers that a request declares."""

    shapes: ClassVar = {"mcp": SHAPES["mcp"]}
    tellers: ClassVar = {"mcp_call": tell_call}

    def __init__(self, servers: McpServers) -> None:
        super().__init__()
        self._servers = servers

    def check_together(self, declarations: Sequence[Json]) -> None:
        """Refuse more servers than one request may declare."""
        limit = self._servers.settings.max_servers_per_request
        if len(declarations) > limit:
            message = f"A request may declare at most {limit} MCP servers."
            raise ClientError(message, param="tools", code="too_many_tools")

    def needs_discovery(self, declaration: Json) -> bool:
        """Whether the server's list is not known, or no longer."""
        return not self._servers.knows_tools(self._declared(declaration).server)

    def may_need_approval(self, declaration: Json) -> bool:
        """Unless it says that no tool of the server does."""
        return may_need_approval(declaration)

    async def offer(self, declaration: Json) -> Offer:
        """The server's tools; none, and an announcement with an error, where it cannot be listed."""
        declared = self._declared(declaration)
        listing = await self._listing(declared)
        tools = [self._offered(declared, tool) for tool in listing.tools]
        return Offer(tuple(described(tools, declared.server_label, declared.description)), listing)

    def _declared(self, declaration: Json) -> McpDeclaration:
        return mcp_declaration(declaration, self._servers.settings.servers)

    async def _listing(self, declared: McpDeclaration) -> McpListing:
        try:
            tools = await self._servers.list_tools(declared.server)
        except McpServerError as error:
            return McpListing(declared.server_label, error=error.message)
        return McpListing(declared.server_label, tuple(tool for tool in tools if declared.allowed.admits(tool)))

    def _offered(self, declared: McpDeclaration, tool: Json) -> OfferedTool:
        label, name = declared.server_label, tool["name"]
        function = function_tool(name, tool["description"], tool["input_schema"])
        asks = declared.approval.needs_approval(tool)
        return OfferedTool("mcp", label, name, function, McpTool(label, name, declared.server, self._servers, asks))
