"""The two kinds of tool declaration, read into values: functions for the model, servers for the gateway.

Requests were checked before; what would be dangerous to take on trust (labels that do not tell servers apart, headers
that break the framing of HTTP, approval that nobody gave) is refused here again. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attache_core.errors import ClientError
from attache_core.json_codec import Json
from attache_core.tools.mcp.server import Credentials, McpServer

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")
_FRAMING_HEADERS = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade"}
    | {"expect", "accept-encoding", "proxy-authorization", "proxy-connection", "mcp-session-id", "mcp-protocol-version"}
)
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
        ClientError: an entry cannot be used; `param` says which.
    """
    found = {index: _mcp_declaration(tool, f"tools[{index}]") for index, tool in enumerate(tools) if is_mcp(tool)}
    labels: set[str] = set()
    for index, declaration in found.items():
        if declaration.server_label in labels:
            raise _invalid(f"tools[{index}].server_label", "Each MCP server of a request needs a label of its own.")
        labels.add(declaration.server_label)
    return found


def is_mcp(tool: Json) -> bool:
    """Whether a declaration is an MCP server's."""
    return tool.get("type") == "mcp"


def _mcp_declaration(tool: Json, param: str) -> McpDeclaration:
    label, url = tool.get("server_label"), tool.get("server_url")
    if not isinstance(label, str) or not label:
        raise _invalid(f"{param}.server_label", "An MCP server needs a `server_label`.")
    if not isinstance(url, str) or not url:
        raise _invalid(f"{param}.server_url", "An MCP server needs a `server_url`.")
    if tool.get("require_approval") != "never":
        message = 'Approval of MCP calls is not supported: set `require_approval` to "never".'
        raise _invalid(f"{param}.require_approval", message)
    return McpDeclaration(label, McpServer(url, _credentials(tool, param)), _allowed_tools(tool, param))


def _credentials(tool: Json, param: str) -> Credentials:
    headers, authorization = tool.get("headers") or {}, tool.get("authorization")
    if not isinstance(headers, dict) or not all(_is_header(name, value) for name, value in headers.items()):
        message = (
            "`headers` must be an object of HTTP header names and printable ASCII values, "
            "without those that HTTP or MCP itself sets."
        )
        raise _invalid(f"{param}.headers", message)
    if authorization is not None and not _is_header("authorization", authorization):
        raise _invalid(f"{param}.authorization", "`authorization` must be a token of printable ASCII characters.")
    return Credentials(headers, authorization)


def _is_header(name: object, value: object) -> bool:
    if not isinstance(name, str) or not isinstance(value, str):
        return False
    valid = _HEADER_NAME.fullmatch(name) and _HEADER_VALUE.fullmatch(value)
    return valid is not None and name.lower() not in _FRAMING_HEADERS


def _allowed_tools(tool: Json, param: str) -> AllowedTools:
    given: Any = tool.get("allowed_tools")
    if given is None:
        return AllowedTools()
    names, read_only = (given.get("tool_names"), given.get("read_only")) if isinstance(given, dict) else (given, None)
    if names is not None and not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise _invalid(
            f"{param}.allowed_tools", "`allowed_tools` must be a list of names or an object with `tool_names`."
        )
    if not isinstance(read_only, (bool, type(None))):
        raise _invalid(f"{param}.allowed_tools.read_only", "`read_only` must be true or false.")
    return AllowedTools(None if names is None else frozenset(names), read_only)


def _invalid(param: str, message: str) -> ClientError:
    return ClientError(message, param=param, code="invalid_value")
