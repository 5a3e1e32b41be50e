"""The declaration of an MCP server: what it may say, and what of it a response shows.

Is unaware of how servers are reached. Invariants: a setting that the gateway would not honour is refused; a secret of a
declaration (headers, authorization, what a URL carries besides scheme, host and path) is never part of what
`public_mcp_tool` returns. Source: API reference, "tools"; what a response shows as in OpenAI's streams.
"""

from __future__ import annotations

import re
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, PlainValidator

from attache_core.json_codec import Json
from attache_core.types.shape import Name, Shape, array_of, choice, text
from attache_core.types.violation import Path, quoted, refused, wrong_type

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")
_FRAMING_HEADERS = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade"}
    | {"expect", "accept-encoding", "proxy-authorization", "proxy-connection", "mcp-session-id", "mcp-protocol-version"}
)
"""Headers that HTTP or MCP itself sets: another value could make one request two, or another session's."""

_NOT_IN_A_URL = re.compile(r"[\s\x00-\x1f\x7f\ud800-\udfff]")


_check_names = array_of(text, "an array of strings")
_approval_setting = choice("always", "never")


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


def header_fault(name: str) -> str | None:
    """What is wrong with the name of a header for an MCP server, as a part of a sentence; None when nothing is."""
    if not _HEADER_NAME.fullmatch(name):
        return "a key is not the name of an HTTP header"
    return f"{quoted(name)} is set by HTTP or MCP itself" if name.lower() in _FRAMING_HEADERS else None


def _check_headers(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    expected = "an object with string keys and string values"
    if not isinstance(value, dict):
        raise wrong_type(expected, value)
    for name, content in value.items():
        if fault := header_fault(name):
            raise refused("invalid_value", f"Invalid '{{param}}': {fault}.")
        if not isinstance(content, str):
            raise wrong_type("a string", content, (name,))
        _require_header_value(content, (name,))
    return value


def _check_server_url(url: str) -> str:
    if not is_http_url(url):
        raise refused("invalid_value", "Invalid '{param}': expected an absolute http or https URL.")
    return url


def is_http_url(url: str) -> bool:
    """Whether it is an absolute http or https URL."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError when it is none
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and not _NOT_IN_A_URL.search(url)


def _refuse(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if value is None:
        return value
    known = "A server is reached by its 'server_url', or by a 'server_label' that the gateway knows."
    message = f"Unsupported parameter: '{{param}}'. {known}"
    raise refused("unsupported_parameter", message)


class ApprovalFilter(Shape):
    """`require_approval` as an object."""

    always: ToolFilter | None = None
    never: ToolFilter | None = None


def _check_approval(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, str):
        return _approval_setting(value)
    if not isinstance(value, dict):
        raise wrong_type("one of 'always', 'never' or object", value)
    _refuse_unknown(value, ("always", "never"))
    for name in ("always", "never"):
        if isinstance(value.get(name), dict):
            _refuse_unknown(value[name], ("tool_names", "read_only"), (name,))
    ApprovalFilter.model_validate(value)
    _refuse_contradiction(value)
    return value


def _refuse_unknown(value: Json, known: tuple[str, ...], at: Path = ()) -> None:
    """A name that is misspelt could mean a call that nobody has approved."""
    for name in value:
        if name not in known:
            raise refused("unknown_parameter", "Unknown parameter: '{param}'.", (*at, name))


def _refuse_contradiction(value: Json) -> None:
    always, never = value.get("always") or {}, value.get("never") or {}
    for name in always.get("tool_names") or ():
        if name in (never.get("tool_names") or ()):
            message = f"Invalid '{{param}}': the tool {quoted(name)} is named in both 'always' and 'never'."
            raise refused("invalid_value", message)
    if always and always == never:
        raise refused("invalid_value", "Invalid '{param}': 'always' and 'never' name the same tools.")


class McpTool(Shape):
    """An MCP server whose tools the gateway executes. Whether it can be reached, `mcp_servers` says."""

    server_label: Name
    connector_id: Annotated[Any, PlainValidator(_refuse)] = None
    tunnel_id: Annotated[Any, PlainValidator(_refuse)] = None
    server_url: Annotated[str, AfterValidator(_check_server_url)] | None = None
    allowed_tools: Annotated[Any, PlainValidator(_check_allowed_tools)] | None = None
    headers: Annotated[Any, PlainValidator(_check_headers)] | None = None
    authorization: Annotated[str, AfterValidator(_check_authorization)] | None = None
    require_approval: Annotated[Any, PlainValidator(_check_approval)] | None = None
    server_description: str | None = None


def public_mcp_tool(tool: Json) -> Json:
    """What a response shows of a declaration: the fields of the API, `headers` always as null, no `authorization`,
    and `server_url` without user, password, query and fragment; null for a server that the gateway knows by itself.
    """
    return {
        "type": "mcp",
        "allowed_tools": tool.get("allowed_tools"),
        "headers": None,
        "require_approval": _public_approval(tool.get("require_approval")),
        "server_description": tool.get("server_description"),
        "server_label": tool.get("server_label"),
        "server_url": _public_url(tool.get("server_url")),
    }


def _public_approval(given: Any) -> Any:  # noqa: ANN401 - any JSON value
    """A setting as it was given; of an object every field, null where it was not said."""
    if not isinstance(given, dict):
        return given
    return {name: None if given.get(name) is None else _public_filter(given[name]) for name in ("always", "never")}


def _public_filter(given: Json) -> Json:
    return {name: given.get(name) for name in ("read_only", "tool_names")}


def _public_url(url: object) -> str | None:
    if not isinstance(url, str):
        return None
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
