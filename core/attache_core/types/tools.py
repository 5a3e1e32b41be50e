"""Tool declarations: what may be declared, and what of it a response shows.

Knows function and MCP tools; is unaware of how they run. Invariants: nothing that is declared is ignored: a tool type
or setting that the gateway would not honour is refused; a secret of an MCP declaration (headers, authorization, what a
URL carries besides scheme, host and path) is never part of what `public_tools` returns.
Source: API reference, "tools"; what a response shows as in OpenAI's streams.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, PlainValidator, StringConstraints

from attache_core.json_codec import Json
from attache_core.types.shape import Shape, array_of, check, named_by_type, text
from attache_core.types.violation import Path, quoted, refused, wrong_type, wrong_value

MAX_TOOLS = 128
"""How many tools one request may declare; an MCP server counts as one."""

MAX_NAME_CHARS = 64
"""How long the name of a function and the label of an MCP server may be."""

Name = Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME_CHARS, pattern="^[a-zA-Z0-9_-]+$")]

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")
_FRAMING_HEADERS = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade"}
    | {"expect", "accept-encoding", "proxy-authorization", "proxy-connection", "mcp-session-id", "mcp-protocol-version"}
)
"""Headers that HTTP or MCP itself sets: another value could make one request two, or another session's."""

_NOT_IN_A_URL = re.compile(r"[\s\x00-\x1f\x7f]")


class FunctionTool(Shape):
    """A function that the client executes."""

    name: Name
    parameters: dict[str, Any] | None = None
    strict: bool | None = None
    description: str | None = None


_check_names = array_of(text, "an array of strings")


class ToolFilter(Shape):
    """`allowed_tools` as an object."""

    tool_names: Annotated[Any, PlainValidator(_check_names)] | None = None
    read_only: bool | None = None


def _check_allowed_tools(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, list):
        return _check_names(value)
    if isinstance(value, dict):
        return ToolFilter.model_validate(value)
    raise wrong_type("one of an array of strings or object", value)


def _require_header_value(value: str, at: Path = ()) -> None:
    if not _HEADER_VALUE.fullmatch(value):
        raise refused("invalid_value", "Invalid '{param}': expected printable ASCII, as an HTTP header value.", at)


def _check_authorization(value: str) -> str:
    _require_header_value(value)
    return value


def _check_headers(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    expected = "an object with string keys and string values"
    if not isinstance(value, dict):
        raise wrong_type(expected, value)
    for name, content in value.items():
        if not _HEADER_NAME.fullmatch(name):
            raise refused("invalid_value", "Invalid '{param}': a key is not the name of an HTTP header.")
        if name.lower() in _FRAMING_HEADERS:
            raise refused("invalid_value", f"Invalid '{{param}}': {quoted(name)} is set by HTTP or MCP itself.")
        if not isinstance(content, str):
            raise wrong_type("a string", content, (name,))
        _require_header_value(content, (name,))
    return value


def _check_server_url(url: str) -> str:
    if not _is_http_url(url):
        raise refused("invalid_value", "Invalid '{param}': expected an absolute http or https URL.")
    return url


def _is_http_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError when it is none
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and not _NOT_IN_A_URL.search(url)


def _refuse(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if value is None:
        return value
    message = "Unsupported parameter: '{param}'. This gateway reaches MCP servers by 'server_url' only."
    raise refused("unsupported_parameter", message)


def _check_approval(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if value == "never":
        return value
    if isinstance(value, str) and value != "always":
        raise wrong_value(value, ("never",))
    message = "This gateway cannot ask for approval yet, and asking is the default: set '{param}' to 'never'."
    raise refused("unsupported_value", message)


class McpTool(Shape):
    """An MCP server whose tools the gateway executes."""

    server_label: Name
    connector_id: Annotated[Any, PlainValidator(_refuse)] = None
    tunnel_id: Annotated[Any, PlainValidator(_refuse)] = None
    server_url: Annotated[str, AfterValidator(_check_server_url)]
    allowed_tools: Annotated[Any, PlainValidator(_check_allowed_tools)] | None = None
    headers: Annotated[Any, PlainValidator(_check_headers)] | None = None
    authorization: Annotated[str, AfterValidator(_check_authorization)] | None = None
    require_approval: Annotated[Any, PlainValidator(_check_approval)] = Field(default=None, validate_default=True)
    server_description: str | None = None


_check_each = array_of(named_by_type({"function": FunctionTool, "mcp": McpTool}), "an array of tools")


def check_tools(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Look at `tools`: their number, each declaration, and that names and labels are unique."""
    if isinstance(value, list) and len(value) > MAX_TOOLS:
        bound = f"Expected an array with maximum length {MAX_TOOLS}, but got an array with length {len(value)} instead."
        raise refused("array_above_max_length", f"Invalid '{{param}}': array too long. {bound}")
    _check_each(value)
    _require_unique(value, "function", "name")
    _require_unique(value, "mcp", "server_label")
    return value


class _Tools(Shape):
    tools: Annotated[Any, PlainValidator(check_tools)]


def validate_tools(tools: object) -> None:
    """Look at the `tools` of a request alone, as `request.validate_create` does.

    Raises:
        ClientError: 400 with `param` and `code` for the first thing that is wrong.
    """
    check(_Tools, {"tools": tools})


def _require_unique(tools: Sequence[Json], kind: str, key: str) -> None:
    for name, count in Counter(declared(tools, kind, key)).items():
        if count > 1:
            message = f"Invalid '{{param}}': {quoted(name)} is the '{key}' of more than one tool. It must be unique."
            raise refused("invalid_value", message)


def declared(tools: Sequence[Json], kind: str, key: str) -> list[str]:
    """One field of every valid declaration of a kind, such as the `name` of every `function`."""
    return [tool[key] for tool in tools if tool["type"] == kind]


def public_tools(tools: Sequence[Json] | None) -> list[Json]:
    """What a response object shows of the declarations of a request, in their order, defaults filled in.

    A function is shown as declared. Of an MCP server only the fields of the API are shown, `headers` always as null,
    `authorization` not at all, and `server_url` without user, password, query and fragment. Of a type that is not known
    here nothing but its name is shown.
    """
    return [_public_tool(tool) for tool in tools or ()]


def _public_tool(tool: Json) -> Json:
    if tool.get("type") == "mcp":
        return _public_mcp(tool)
    if tool.get("type") != "function":
        return {"type": tool.get("type")}
    shown = {"type": "function", "description": None, "name": None, "parameters": None, "strict": True}
    return {**shown, **tool}


def _public_mcp(tool: Json) -> Json:
    return {
        "type": "mcp",
        "allowed_tools": tool.get("allowed_tools"),
        "headers": None,
        "require_approval": tool.get("require_approval"),
        "server_description": tool.get("server_description"),
        "server_label": tool.get("server_label"),
        "server_url": _public_url(str(tool.get("server_url") or "")),
    }


def _public_url(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
