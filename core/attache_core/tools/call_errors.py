"""How a tool call failed: the public `error` object of an `mcp_call` item, and what the model is told of it.

Three kinds, as in the API reference ("MCP tool call", `error`): the tool ran and said that it failed, the server
answered with a JSON-RPC error (or with nothing that is MCP), the server answered with an HTTP error.
"""

from __future__ import annotations

from collections.abc import Sequence

from attache_core import json_codec
from attache_core.json_codec import Json

INVALID_PARAMS = -32602
CONNECTION_CLOSED = -32000
REQUEST_TIMEOUT = -32001
PARSE_ERROR = -32700
INTERNAL_ERROR = -32603


def execution_error(content: Sequence[Json]) -> Json:
    """The tool reported a failure; `content` is what it said, as MCP content blocks."""
    return {"type": "mcp_tool_execution_error", "content": list(content)}


def protocol_error(code: int, message: str) -> Json:
    """The call did not reach the tool, or its result did not come back; `code` is JSON-RPC's."""
    return {"type": "mcp_protocol_error", "code": code, "message": message}


def http_error(code: int, message: str) -> Json:
    """The server answered with an HTTP status that is no success."""
    return {"type": "http_error", "code": code, "message": message}


def error_text(error: object) -> str:
    """What the model is told instead of an output. Accepts any stored `error`, also one that is not ours."""
    if isinstance(error, str):
        return error
    if not isinstance(error, dict):
        return json_codec.encode(error).decode()
    content = error.get("content")
    if isinstance(content, list):
        return "\n".join(_block_text(block) for block in content) or "The tool failed and said nothing."
    message = error.get("message")
    return f"The tool call failed: {message}" if isinstance(message, str) else json_codec.encode(error).decode()


def _block_text(block: object) -> str:
    text = block.get("text") if isinstance(block, dict) else None
    return text if isinstance(text, str) else json_codec.encode(block).decode()
