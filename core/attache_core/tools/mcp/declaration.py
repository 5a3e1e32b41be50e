"""An `mcp` entry of `tools`, read into values. What a valid one is, `types` says. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from attache_core.json_codec import Json
from attache_core.tools.mcp.named_server import NamedServer
from attache_core.tools.mcp.server import Credentials, McpServer


@dataclass(frozen=True, slots=True)
class ToolFilter:
    """The tools that a declaration means, all where it says nothing; each field is None where it does not say."""

    names: frozenset[str] | None = None
    read_only: bool | None = None

    def admits(self, tool: Json) -> bool:
        """Whether a tool, in the shape of `mcp_list_tools`, is meant."""
        if self.names is not None and tool["name"] not in self.names:
            return False
        return self.read_only is None or tool["annotations"]["read_only"] is self.read_only

    def among(self, names: frozenset[str] | None) -> ToolFilter:
        """What is allowed of these; None means all."""
        if names is None:
            return self
        return replace(self, names=names if self.names is None else self.names & names)


@dataclass(frozen=True, slots=True)
class ApprovalRule:
    """The `require_approval` of a declaration. Whoever is not plainly exempt needs approval.

    Attributes:
        exempt: the tools that need none; None for no tool.
        asked: tools that need approval all the same; None for no tool.
    """

    exempt: ToolFilter | None = None
    asked: ToolFilter | None = None

    def needs_approval(self, tool: Json) -> bool:
        """Whether each call of a tool, in the shape of `mcp_list_tools`, needs approval."""
        if self.exempt is None or not self.exempt.admits(tool):
            return True
        return self.asked is not None and self.asked.admits(tool)


@dataclass(frozen=True, slots=True)
class McpDeclaration:
    """What a declaration says.

    Attributes:
        description: what the model is to be told of the server.
    """

    server_label: str
    server: McpServer
    allowed: ToolFilter
    approval: ApprovalRule
    description: str | None = None


def mcp_declaration(tool: Json, named: Mapping[str, NamedServer]) -> McpDeclaration:
    """Read a declaration that was checked. Of a server among `named`, the operator says where it is, and who asks."""
    label, description = tool["server_label"], tool.get("server_description")
    allowed, approval = _tool_filter(tool.get("allowed_tools")), _approval_rule(tool.get("require_approval"))
    operators = named.get(label)
    if operators is None:
        credentials = Credentials(tool.get("headers"), tool.get("authorization"))
        return McpDeclaration(label, McpServer(tool["server_url"], credentials), allowed, approval, description)
    names = None if operators.allowed_tools is None else frozenset(operators.allowed_tools)
    description = description or operators.description
    return McpDeclaration(label, _server(operators), allowed.among(names), approval, description)


def _server(named: NamedServer) -> McpServer:
    headers = {name: value.reveal() for name, value in named.headers.items()}
    authorization = None if named.authorization is None else named.authorization.reveal()
    credentials = Credentials(headers, authorization)
    return McpServer(named.url.reveal(), credentials, named.transport, is_operators=True)


def may_need_approval(tool: Json) -> bool:
    """Whether a declaration of valid shape may lead to a call that needs approval, whatever tools the server has."""
    return tool.get("require_approval") != "never"


def _tool_filter(given: Any) -> ToolFilter:  # noqa: ANN401 - any JSON value
    if not isinstance(given, dict):
        return ToolFilter(None if given is None else frozenset(given))
    names = given.get("tool_names")
    return ToolFilter(None if names is None else frozenset(names), given.get("read_only"))


def _approval_rule(given: Any) -> ApprovalRule:  # noqa: ANN401 - any JSON value
    if isinstance(given, dict):
        return ApprovalRule(_named(given.get("never")), _named(given.get("always")))
    return ApprovalRule(ToolFilter()) if given == "never" else ApprovalRule()


def _named(given: Json | None) -> ToolFilter | None:
    """A filter that says nothing names no tool: to exempt all of them, there is 'never'."""
    found = _tool_filter(given or {})
    return None if found == ToolFilter() else found
