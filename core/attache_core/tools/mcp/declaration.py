"""An `mcp` entry of `tools`, read into values. What a valid one is, `types.mcp_tool` says. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from attache_core.json_codec import Json
from attache_core.tools.mcp.server import Credentials, McpServer


@dataclass(frozen=True, slots=True)
class AllowedTools:
    """The `allowed_tools` of a declaration; None where it does not say."""

    names: frozenset[str] | None = None
    read_only: bool | None = None

    def admits(self, tool: Json) -> bool:
        """Whether a tool, in the shape of `mcp_list_tools`, may be used."""
        if self.names is not None and tool["name"] not in self.names:
            return False
        return self.read_only is None or tool["annotations"]["read_only"] is self.read_only


@dataclass(frozen=True, slots=True)
class McpDeclaration:
    """What a declaration says."""

    server_label: str
    server: McpServer
    allowed: AllowedTools


def mcp_declaration(tool: Json) -> McpDeclaration:
    """Read a declaration of valid shape."""
    credentials = Credentials(tool.get("headers"), tool.get("authorization"))
    server = McpServer(tool["server_url"], credentials)
    return McpDeclaration(tool["server_label"], server, _allowed_tools(tool.get("allowed_tools")))


def _allowed_tools(given: Any) -> AllowedTools:  # noqa: ANN401 - any JSON value
    if not isinstance(given, dict):
        return AllowedTools(None if given is None else frozenset(given))
    names = given.get("tool_names")
    return AllowedTools(None if names is None else frozenset(names), given.get("read_only"))
