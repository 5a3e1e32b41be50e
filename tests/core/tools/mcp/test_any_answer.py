"""Whatever a server answers, a listing has tools or an error and a call has a result; nothing is raised."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from attache_core import json_codec
from attache_core.json_codec import Json
from attache_core.testing.mcp_server import Fault, RunningMcpServer, running_mcp_server
from attache_core.tools.gateway_tool import CallResult
from attache_core.tools.mcp.server import McpServer
from attache_core.tools.mcp.servers import McpServers, open_mcp_servers
from attache_core.tools.mcp.settings import McpSettings
from core.tools.registries import listings, registry_of

BATCH = 12
"""Answers of one example: opening a session costs more than all of them."""

SETTINGS = McpSettings(allow_private_addresses=True, list_ttl_s=0.0, max_output_bytes=1024)

ANY: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def objects(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Objects with some of these fields, each as it should be or any JSON."""
    return st.fixed_dictionaries({}, optional={name: value | ANY for name, value in fields.items()})


NUMBER = st.integers(-33_000, -31_990)
ERROR = objects(
    code=NUMBER | st.just(-32_099), message=st.text(max_size=5), data=objects(type=ANY, code=ANY, message=ANY)
)
TOOL = objects(
    name=st.text(max_size=5),
    description=st.text(max_size=5),
    inputSchema=objects(type=st.just("object"), properties=ANY, required=st.none()),
    outputSchema=objects(type=st.just("object")),
    annotations=objects(readOnlyHint=st.booleans()),
)
BLOCK = objects(
    type=st.sampled_from(["text", "image", "audio", "resource", "resource_link"]),
    text=st.text(max_size=5),
    data=st.text(max_size=5),
    mimeType=st.just("image/png"),
    resource=objects(uri=st.just("file:///x"), blob=st.text(max_size=5), text=st.text(max_size=5)),
)
RESULT = objects(
    tools=st.lists(TOOL, max_size=3),
    content=st.lists(BLOCK, max_size=3),
    isError=st.booleans(),
    structuredContent=ANY,
    resultType=st.sampled_from(["complete", "input_required", "x"]),
    ttlMs=st.integers(),
    cacheScope=st.just("public"),
    nextCursor=st.none(),
)
RESPONSES = st.one_of(
    st.tuples(st.just("error"), ERROR | ANY).map(lambda named: dict([named])),
    st.tuples(st.just("result"), RESULT | ANY).map(lambda named: dict([named])),
    st.fixed_dictionaries({"error": ERROR, "result": RESULT}),
)


def fault(response: Json, *, streamed: bool) -> Fault:
    body = json_codec.encode({"jsonrpc": "2.0", "id": None, **response})
    if streamed:
        return Fault(content_type="text/event-stream", body=b"event: message\ndata: " + body + b"\n\n")
    return Fault(status=400 if "error" in response and "result" not in response else 200, body=body)


async def check_listing(mcp: McpServers, server: RunningMcpServer) -> None:
    declared = {"type": "mcp", "server_label": "demo", "server_url": server.url, "require_approval": "never"}
    registry = await registry_of([declared], mcp)
    [listing] = listings(registry)
    assert len(registry.function_tools) == len(listing.tools)
    assert isinstance(listing.error, str) or listing.error is None
    assert listing.error is None or not listing.tools
    json_codec.encode([registry.function_tools, listing.tools])


async def check_call(mcp: McpServers, server: RunningMcpServer) -> None:
    result = await mcp.call_tool(McpServer(server.url), "echo", {"text": "x"})
    assert isinstance(result, CallResult)
    assert isinstance(result.model_text, str)
    assert result.error is None or {"type"} < result.error.keys()
    json_codec.encode([result.output, result.error])


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(RESPONSES, min_size=BATCH, max_size=BATCH), st.sampled_from(["modern", "legacy"]), st.booleans())
async def test_any_answer_gives_a_listing_and_a_result(responses: list[Json], protocol: str, streamed: bool) -> None:
    async with (
        asyncio.timeout(5),
        running_mcp_server(protocol=protocol) as server,
        open_mcp_servers(SETTINGS) as mcp,
    ):
        for response in responses:
            server.faults = dict.fromkeys(("tools/list", "tools/call"), fault(response, streamed=streamed))
            await check_listing(mcp, server)
            await check_call(mcp, server)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(RESPONSES, st.booleans())
async def test_any_answer_to_the_handshake_gives_a_listing_and_a_result(response: Json, streamed: bool) -> None:
    answer = fault(response, streamed=streamed)
    faults = {"server/discover": answer, "initialize": answer}
    async with (
        asyncio.timeout(5),
        running_mcp_server(faults=faults) as server,
        open_mcp_servers(SETTINGS) as mcp,
    ):
        await check_listing(mcp, server)
        await check_call(mcp, server)
