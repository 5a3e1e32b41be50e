"""What the MCP SDK raises, as an `McpServerError`.

The SDK raises its own errors, pydantic's, httpx2's and groups of all these, and what its code runs into when a server
sends what it did not expect. Invariant: nothing is shown of it but a JSON-RPC error's code and message, which are the
server's own: without the credentials that they may repeat, and cut.
"""

from __future__ import annotations

import logging

import anyio
from mcp import MCPError
from pydantic import ValidationError

from attache_core.json_codec import Json
from attache_core.tools.call_errors import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    PARSE_ERROR,
    REQUEST_TIMEOUT,
    protocol_error,
)
from attache_core.tools.mcp.failure import CLOSED, NOT_MCP, TIMED_OUT, McpServerError, closed, told_by_wire
from attache_core.tools.mcp.server import Credentials

_log = logging.getLogger(__name__)
_MAX_MESSAGE_CHARS = 2000
_SILENT = "The MCP server refused the request without saying why."

_SDK_WORDS = {
    "Connection closed": (CONNECTION_CLOSED, CLOSED),
    "SSE stream": (CONNECTION_CLOSED, CLOSED),
    "Failed to parse": (PARSE_ERROR, NOT_MCP),
    "server answered a request with 202": (PARSE_ERROR, NOT_MCP),
    "Request '": (REQUEST_TIMEOUT, TIMED_OUT),
}
"""How the SDK's own errors begin, and what they mean."""


def failure_of(error: BaseException, credentials: Credentials) -> McpServerError:
    """Map what the SDK raised. Of a group, the first error that is known counts."""
    leaves = list(_leaves(error))
    for leaf in leaves:
        known = _known(leaf, credentials)
        if known is not None:
            return McpServerError(known)
    _log.warning("A connection to an MCP server failed with %s.", ", ".join(type(leaf).__name__ for leaf in leaves))
    return McpServerError(protocol_error(INTERNAL_ERROR, "The connection to the MCP server failed."))


def _known(error: BaseException, credentials: Credentials) -> Json | None:
    if isinstance(error, McpServerError):
        return error.error
    if isinstance(error, MCPError):
        return _of_mcp_error(error, credentials)
    if isinstance(error, TimeoutError):
        return protocol_error(REQUEST_TIMEOUT, TIMED_OUT)
    if isinstance(error, (anyio.ClosedResourceError, anyio.BrokenResourceError)):
        return closed()
    if isinstance(error, (ValidationError, RuntimeError)):
        return protocol_error(PARSE_ERROR, NOT_MCP)
    return None


def _of_mcp_error(error: MCPError, credentials: Credentials) -> Json:
    ours = told_by_wire(error.data)
    if ours is not None:
        return ours
    for words, (code, message) in _SDK_WORDS.items():
        if error.message.startswith(words):
            return protocol_error(code, message)
    return protocol_error(error.code, credentials.redact(error.message)[:_MAX_MESSAGE_CHARS] or _SILENT)


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in _leaves(inner)]
    return [error]
