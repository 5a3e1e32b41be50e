"""MCP's shapes to the public ones: a listed tool, and the result of a call.

A server may repeat the credentials with which it was asked. What is made here is shown to the model and the client and
is stored, so it goes through a `Redact` first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    TextContent,
    Tool,
)

from attache_core import json_codec
from attache_core.json_codec import Json
from attache_core.tools.call_errors import INTERNAL_ERROR, execution_error, protocol_error
from attache_core.tools.gateway_tool import CallResult
from attache_core.tools.mcp.failure import McpServerError

Redact = Callable[[str], str]
"""A text without the credentials that it may repeat."""


def listed_tool(tool: Tool, max_bytes: int, redact: Redact = str) -> Json:
    """A tool as an `mcp_list_tools` item shows it; its input schema is the server's own.

    Raises:
        McpServerError: description and schema are longer than `max_bytes` as JSON.
    """
    if len(json_codec.encode([tool.description, tool.input_schema])) > max_bytes:
        message = (
            f"Tool {tool.name[:64]!r} is described in more than {max_bytes} bytes, the gateway's mcp.max_tool_bytes."
        )
        raise McpServerError(protocol_error(INTERNAL_ERROR, message))
    read_only = tool.annotations is not None and tool.annotations.read_only_hint is True
    listed: Json = {
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.input_schema,
        "annotations": {"read_only": read_only},
    }
    text = _json(listed)
    shown = redact(text)
    return listed if shown == text else json_codec.decode(shown.encode())


def call_result(result: CallToolResult, max_bytes: int, redact: Redact = str) -> CallResult:
    """The outcome of a call that came back. Text is kept as it is, the rest described as JSON.

    Structured content is what the tool says in another form, so it is given only where there is no text.
    """
    has_text = any(isinstance(block, TextContent) and block.text for block in result.content)
    if result.is_error:
        blocks = [_error_block(block, redact) for block in result.content]
        if not has_text and result.structured_content is not None:
            blocks.append(_text_block(redact(_json(result.structured_content))))
        return CallResult(None, execution_error(_bounded_blocks(blocks, max_bytes)))
    pieces = [_piece(block) for block in result.content]
    if not has_text and result.structured_content is not None:
        pieces.append(_json(result.structured_content))
    return CallResult(bounded(redact("\n".join(pieces)), max_bytes))


def bounded(text: str, max_bytes: int) -> str:
    """`text`, or as much of it as fits into `max_bytes` of UTF-8, with a note that says what is missing."""
    data = text.encode(errors="surrogatepass")
    if len(data) <= max_bytes:
        return text
    kept = data[:max_bytes].decode(errors="ignore")
    return f"{kept}\n[Cut off here: the first {max_bytes} of {len(data)} bytes, the gateway's mcp.max_output_bytes.]"


def _piece(block: ContentBlock) -> str:
    return block.text if isinstance(block, TextContent) else _json(_described(block))


def _error_block(block: ContentBlock, redact: Redact) -> Json:
    if isinstance(block, TextContent):
        return _text_block(redact(block.text))
    described = _described(block)
    shown = redact(_json(described))
    return described if shown == _json(described) else _text_block(shown)


def _text_block(text: str) -> Json:
    return {"type": "text", "text": text, "annotations": None, "meta": None}


def _described(block: ContentBlock) -> Json:
    """A block that is not text. Binary data would be noise to a model, so only its kind and size are told."""
    if isinstance(block, (ImageContent, AudioContent)):
        return {"type": block.type, "mime_type": block.mime_type, "size_bytes": _decoded_size(block.data)}
    if isinstance(block, EmbeddedResource) and isinstance(block.resource, BlobResourceContents):
        blob = block.resource
        described = {"uri": blob.uri, "mime_type": blob.mime_type, "size_bytes": _decoded_size(blob.blob)}
        return {"type": "resource", "resource": described}
    return {"type": block.type, **block.model_dump(mode="json", by_alias=True, exclude_none=True)}


def _bounded_blocks(blocks: Sequence[Json], max_bytes: int) -> list[Json]:
    """The blocks as long as all fits; else one text block with as much of it as does."""
    if sum(len(json_codec.encode(block)) for block in blocks) <= max_bytes:
        return list(blocks)
    texts = [block["text"] if block.get("type") == "text" else _json(block) for block in blocks]
    return [_text_block(bounded("\n".join(texts), max_bytes))]


def _decoded_size(base64_text: str) -> int:
    return len(base64_text) * 3 // 4 - base64_text[-2:].count("=")


def _json(value: object) -> str:
    return json_codec.encode(value).decode()
