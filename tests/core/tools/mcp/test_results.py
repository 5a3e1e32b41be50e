from __future__ import annotations

from typing import Any

import pytest
from mcp_types import CallToolResult, EmbeddedResource, TextContent, TextResourceContents, Tool

from attache_core.json_codec import Json
from attache_core.tools.gateway_tool import CallResult
from attache_core.tools.mcp.results import bounded, call_result, listed_tool
from attache_core.tools.outbound.credentials import Credentials

TEXT = {"type": "text", "text": "hello"}
IMAGE = {"type": "image", "data": "QUJDRA==", "mimeType": "image/png"}


def result(*content: Json, max_bytes: int = 10_000, structured: Any = None, failed: bool = False) -> CallResult:
    fields = {"structuredContent": structured} if structured is not None else {}
    return call_result(CallToolResult.model_validate({"content": content, "isError": failed, **fields}), max_bytes)


def block(text: str) -> Json:
    return {"type": "text", "text": text, "annotations": None, "meta": None}


@pytest.mark.parametrize(
    ("content", "structured", "output"),
    [
        ([], None, ""),
        ([TEXT], None, "hello"),
        ([TEXT, {"type": "text", "text": "world"}], None, "hello\nworld"),
        ([TEXT], {"a": 1}, "hello"),
        ([], {"a": [1, "é"]}, '{"a":[1,"é"]}'),
        ([{"type": "text", "text": ""}], {"a": 1}, '\n{"a":1}'),
        ([IMAGE], None, '{"type":"image","mime_type":"image/png","size_bytes":4}'),
        ([TEXT, IMAGE], None, 'hello\n{"type":"image","mime_type":"image/png","size_bytes":4}'),
        (
            [{"type": "resource_link", "name": "n", "uri": "file:///a"}],
            None,
            '{"type":"resource_link","name":"n","uri":"file:///a"}',
        ),
        (
            [{"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}}],
            None,
            '{"type":"resource","resource":{"uri":"file:///a","text":"inside"}}',
        ),
        (
            [{"type": "resource", "resource": {"uri": "file:///a", "blob": "QUJD", "mimeType": "x/y"}}],
            None,
            '{"type":"resource","resource":{"uri":"file:///a","mime_type":"x/y","size_bytes":3}}',
        ),
    ],
)
def test_content_becomes_one_text(content: list[Json], structured: Json | None, output: str) -> None:
    assert result(*content, structured=structured) == CallResult(output)


def test_failure_keeps_all_that_the_tool_said() -> None:
    failed = result(TEXT, {"type": "text", "text": "world"}, failed=True)
    assert failed == CallResult(None, {"type": "mcp_tool_execution_error", "content": [block("hello"), block("world")]})
    assert failed.model_text == "hello\nworld"


def test_failure_without_text_tells_the_structured_content() -> None:
    assert result(failed=True, structured={"why": 1}).model_text == '{"why":1}'


def test_long_output_is_cut_off_with_a_note() -> None:
    output = result({"type": "text", "text": "x" * 50}, max_bytes=10)
    note = "[Cut off here: the first 10 of 50 bytes, the gateway's mcp.max_output_bytes.]"
    assert output == CallResult(f"xxxxxxxxxx\n{note}")


def test_long_failure_is_cut_off_with_a_note() -> None:
    failed = result({"type": "text", "text": "x" * 500}, max_bytes=100, failed=True)
    assert failed.model_text.startswith("x" * 100 + "\n[Cut off here")
    assert len(failed.model_text) < 200


def test_cut_falls_between_characters() -> None:
    assert bounded("é" * 4, 3).startswith("é\n[Cut off here: the first 3 of 8 bytes")


def test_text_that_just_fits_is_whole() -> None:
    assert bounded("é" * 4, 8) == "é" * 4


LEAK = "token canary-4c2e-91 of team blue"


def redact(text: str) -> str:
    return Credentials({"X-Team": "blue", "X-Key": "canary-4c2e-91"}).redact_values(text)


@pytest.mark.parametrize(
    "result",
    [
        CallToolResult(content=[TextContent(text=LEAK)]),
        CallToolResult(content=[TextContent(text=LEAK)], is_error=True),
        CallToolResult(content=[], structured_content={"seen": LEAK}),
        CallToolResult(content=[], structured_content={"seen": LEAK}, is_error=True),
        *(
            CallToolResult(
                content=[EmbeddedResource(resource=TextResourceContents(uri="file:///a", text=LEAK))], is_error=is_error
            )
            for is_error in (False, True)
        ),
    ],
)
def test_credential_that_a_server_repeats_is_not_part_of_a_result(result: CallToolResult) -> None:
    """A short value may well stand there by itself."""
    shown = str(call_result(result, 10_000, redact))
    assert "token [redacted] of team blue" in shown
    assert "canary" not in shown


def test_credential_that_a_server_repeats_is_not_part_of_a_list() -> None:
    tool = Tool(name="a", description=LEAK, input_schema={"type": "object", "title": LEAK})
    listed = listed_tool(tool, 10_000, redact)
    assert listed["description"] == listed["input_schema"]["title"] == "token [redacted] of team blue"
