"""The two kinds of tool declaration, read into values: functions for the model, servers for the gateway.

Unaware of what a valid declaration is: that is `types.tools`' to say, and it is asked here again, because a chain may
have no filter that asked before and what it refuses is dangerous (labels that do not tell servers apart, headers that
break the framing of HTTP, approval that nobody gave). Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attache_core.json_codec import Json
from attache_core.tools.mcp.server import Credentials, McpServer
from attache_core.types.tools import validate_tools

_NO_PARAMETERS: Json = {"type": "object", "properties": {}}


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
    """One `mcp` entry of `tools`."""

    server_label: str
    server: McpServer
    allowed: AllowedTools


def function_tool(name: str, description: str | None, parameters: object) -> Json:
    """A server's tool as a function of the Responses API. The schema stays as it is, where it is one."""
    schema = dict(parameters) if isinstance(parameters, Mapping) and parameters else _NO_PARAMETERS
    if schema.get("required", ()) is None:  # some servers write null for "nothing"; it is no JSON Schema
        schema = {key: value for key, value in schema.items() if key != "required"}
    return {"type": "function", "name": name, "description": description, "parameters": schema, "strict": False}


def mcp_declarations(tools: Sequence[Json]) -> dict[int, McpDeclaration]:
    """The `mcp` entries, by their index in `tools`.

    Raises:
        ClientError: an entry of `tools`, of whatever type, cannot be used; `param` says which.
    """
    validate_tools(tools or [])
    return {index: _mcp_declaration(tool) for index, tool in enumerate(tools) if is_mcp(tool)}


def is_mcp(tool: Json) -> bool:
    """Whether a declaration is an MCP server's."""
    return tool.get("type") == "mcp"


def _mcp_declaration(tool: Json) -> McpDeclaration:
    credentials = Credentials(tool.get("headers"), tool.get("authorization"))
    server = McpServer(tool["server_url"], credentials)
    return McpDeclaration(tool["server_label"], server, _allowed_tools(tool.get("allowed_tools")))


def _allowed_tools(given: Any) -> AllowedTools:  # noqa: ANN401 - any JSON value
    if not isinstance(given, dict):
        return AllowedTools(None if given is None else frozenset(given))
    names = given.get("tool_names")
    return AllowedTools(None if names is None else frozenset(names), given.get("read_only"))
