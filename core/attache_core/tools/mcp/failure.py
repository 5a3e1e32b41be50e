"""What can go wrong between the gateway and an MCP server, in our words and in the API's error shapes.

No text here is a library's, a credential or a URL: all of it may be shown to clients and to the model. Unaware of the
SDK; what that raises is mapped to these errors in `sdk_errors`.
"""

from __future__ import annotations

import secrets

from attache_core.errors import ToolError
from attache_core.json_codec import Json
from attache_core.tools.call_errors import CONNECTION_CLOSED, PARSE_ERROR, http_error, protocol_error

NOT_MCP = "The MCP server's answer is not valid MCP."
CLOSED = "The MCP server closed the connection before it answered."
TIMED_OUT = "The MCP server did not answer in time."
TOO_LARGE = "The MCP server's answer is larger than the gateway's mcp.max_message_bytes."
UNREACHABLE = "The MCP server cannot be reached."

_WIRE_FAILURE = -32_099
_OURS = secrets.token_hex(16)
"""Tells our transport's errors from a server's, which can send any code and any data but cannot know this."""


class McpServerError(ToolError):
    """A server failed.

    Attributes:
        error: the public error object, `mcp_protocol_error` or `http_error`.
    """

    def __init__(self, error: Json) -> None:
        super().__init__(str(error["message"]))
        self.error = error


class TransportNotSpokenError(McpServerError):
    """The server answers, but does not speak the transport."""


def unreachable(message: str = UNREACHABLE) -> Json:
    """The error object for a server to which no connection could be made."""
    return protocol_error(CONNECTION_CLOSED, message)


def closed() -> Json:
    """The error object for a connection that ended before an answer came."""
    return protocol_error(CONNECTION_CLOSED, CLOSED)


def too_large() -> Json:
    """The error object for an answer over the gateway's limit."""
    return protocol_error(PARSE_ERROR, TOO_LARGE)


def http_failure(status: int) -> Json:
    """The error object for an HTTP answer that is no success."""
    return http_error(status, f"The MCP server answered with HTTP status {status}.")


def wire_error(error: Json) -> Json:
    """A failure of HTTP as the JSON-RPC error by which our transport tells the SDK of it; it is never shown."""
    return {"code": _WIRE_FAILURE, "message": error["message"], "data": {_OURS: error}}


def told_by_wire(data: object) -> Json | None:
    """The error object that our transport put into `data`; None for whatever a server sent there."""
    error: Json | None = data.get(_OURS) if isinstance(data, dict) else None
    return error
