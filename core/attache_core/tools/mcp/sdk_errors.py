"""What the MCP SDK raises, as an `McpServerError`.

The SDK raises its own errors, pydantic's, httpx2's and groups of all these.
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
from attache_core.tools.mcp.failure import CLOSED, NOT_MCP, TIMED_OUT, WIRE_FAILURE, McpServerError, closed
from attache_core.tools.mcp.server import Credentials

SDK_ERRORS = (
    MCPError,
    ValidationError,
    RuntimeError,
    TimeoutError,
    anyio.ClosedResourceError,
    anyio.BrokenResourceError,
)
"""What a request of the SDK may raise."""

_log = logging.getLogger(__name__)
_MAX_MESSAGE_CHARS = 2000

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
    if error.code == WIRE_FAILURE and isinstance(error.data, dict):
        return error.data
    for words, (code, message) in _SDK_WORDS.items():
        if error.message.startswith(words):
            return protocol_error(code, message)
    return protocol_error(error.code, credentials.redact(error.message)[:_MAX_MESSAGE_CHARS])


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in _leaves(inner)]
    return [error]
