"""An `mcp` entry of `tools`, read into values. What a valid one is, `types` says. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from attache_core.json_codec import Json
from attache_core.tools.mcp.named_server import NamedServer
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

    def among(self, names: frozenset[str] | None) -> AllowedTools:
        """What is allowed of these; None means all."""
        if names is None:
            return self
        return replace(self, names=names if self.names is None else self.names & names)


@dataclass(frozen=True, slots=True)
class McpDeclaration:
    """What a declaration says.

    Attributes:
        description: what the model is to be told of the server.
    """

    server_label: str
    server: McpServer
    allowed: AllowedTools
    description: str | None = None


def mcp_declaration(tool: Json, named: Mapping[str, NamedServer]) -> McpDeclaration:
    """Read a declaration that was checked. Of a server among `named`, the operator says where it is, and who asks."""
    label, description = tool["server_label"], tool.get("server_description")
    allowed = _allowed_tools(tool.get("allowed_tools"))
    operators = named.get(label)
    if operators is None:
        credentials = Credentials(tool.get("headers"), tool.get("authorization"))
        return McpDeclaration(label, McpServer(tool["server_url"], credentials), allowed, description)
    names = None if operators.allowed_tools is None else frozenset(operators.allowed_tools)
    return McpDeclaration(label, _server(operators), allowed.among(names), description or operators.description)


def _server(named: NamedServer) -> McpServer:
    headers = {name: value.reveal() for name, value in named.headers.items()}
    authorization = None if named.authorization is None else named.authorization.reveal()
    credentials = Credentials(headers, authorization)
    return McpServer(named.url.reveal(), credentials, named.transport, is_operators=True)


def _allowed_tools(given: Any) -> AllowedTools:  # noqa: ANN401 - any JSON value
    if not isinstance(given, dict):
        return AllowedTools(None if given is None else frozenset(given))
    names = given.get("tool_names")
    return AllowedTools(None if names is None else frozenset(names), given.get("read_only"))
