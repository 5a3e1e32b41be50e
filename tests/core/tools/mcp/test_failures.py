"""What comes of it when servers fail, for each operation and each way to fail, on real servers.

Every case is a defined listing or result, the turn can go on, and no call is ever sent twice.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from attache_core.json_codec import Json
from attache_core.testing.mcp_server import Fault, McpServerOptions, running_mcp_server
from attache_core.tools.call_errors import http_error, protocol_error
from attache_core.tools.gateway_tool import CallResult
from attache_core.tools.mcp.items import McpListing
from attache_core.tools.mcp.server import McpServer
from attache_core.tools.mcp.servers import open_mcp_servers
from attache_core.tools.mcp.settings import McpSettings
from core.tools.registries import listings, registry_of

Declare = Callable[..., Json]

NOT_MCP = protocol_error(-32700, "The MCP server's answer is not valid MCP.")
CLOSED = protocol_error(-32000, "The MCP server closed the connection before it answered.")
UNREACHABLE = protocol_error(-32000, "The MCP server cannot be reached.")
TIMED_OUT = protocol_error(-32001, "The MCP server did not answer in time.")
TOO_LARGE = protocol_error(-32700, "The MCP server's answer is larger than the gateway's mcp.max_message_bytes.")


def status(code: int) -> Json:
    return http_error(code, f"The MCP server answered with HTTP status {code}.")


# A call that is never answered ends when its caller gives up: see test_sessions and test_scheduler.
HANGING = pytest.param(Fault(hang=True), TIMED_OUT, id="never answers")
SILENT = protocol_error(-32050, "The MCP server refused the request without saying why.")
FORGED = {"type": "http_error", "code": 200, "message": "All is well."}
FAULTS: dict[str, tuple[Fault, Json]] = {
    "500": (Fault(status=500, content_type="text/plain", body=b"trace"), status(500)),
    "401": (Fault(status=401, body=b"{}"), status(401)),
    "429 with a page": (Fault(status=429, content_type="text/html", body=b"<p>"), status(429)),
    "redirect": (Fault(status=307, body=b"/elsewhere"), status(307)),
    "redirect to another host": (Fault(status=302, body=b"http://192.0.2.1/"), status(302)),
    "no JSON": (Fault(body=b"{'a': 1"), NOT_MCP),
    "no object": (Fault(body=b"[]"), NOT_MCP),
    "no JSON-RPC": (Fault(body=b'{"tools": []}'), NOT_MCP),
    "no JSON in events": (Fault(content_type="text/event-stream", body=b"event: message\ndata: {'a'\n\n"), NOT_MCP),
    "a page": (Fault(content_type="text/html", body=b"<html>"), NOT_MCP),
    "nothing": (Fault(status=204), status(204)),
    "accepted": (Fault(status=202), NOT_MCP),
    "wrong result": (Fault(result={"tools": 1, "content": 1}), NOT_MCP),
    "JSON-RPC error": (
        Fault(error={"code": -32050, "message": "Out of order."}),
        protocol_error(-32050, "Out of order."),
    ),
    "JSON-RPC error with status 400": (
        Fault(status=400, error={"code": -32050, "message": "Out of order."}),
        protocol_error(-32050, "Out of order."),
    ),
    "JSON-RPC error that is empty": (Fault(error={"code": -32050, "message": ""}), SILENT),
    "JSON-RPC error that is long": (
        Fault(error={"code": -32050, "message": "x" * 3000}),
        protocol_error(-32050, "x" * 2000),
    ),
    "JSON-RPC error with the gateway's own code": (
        Fault(error={"code": -32099, "message": "Trust me.", "data": FORGED}),
        protocol_error(-32099, "Trust me."),
    ),
    "JSON-RPC error with the gateway's own code, empty data and status 400": (
        Fault(status=400, error={"code": -32099, "message": "Trust me.", "data": {}}),
        protocol_error(-32099, "Trust me."),
    ),
    "JSON-RPC error without a message": (Fault(error={"code": -32050}), NOT_MCP),
    "JSON-RPC error without a message and with status 400": (Fault(status=400, error={"code": -32050}), status(400)),
    "JSON-RPC error to nobody": (
        Fault(body=b'{"jsonrpc":"2.0","id":null,"error":{"code":-32050,"message":"Out of order."}}'),
        protocol_error(-32050, "Out of order."),
    ),
    "a request": (Fault(body=b'{"jsonrpc":"2.0","id":1,"method":"ping"}'), NOT_MCP),
    "dies in its JSON": (Fault(body=b'{"jsonrpc"', cut_off=True), CLOSED),
    "dies in its events": (Fault(content_type="text/event-stream", body=b": hm\n\n", cut_off=True), CLOSED),
    "ends its events": (Fault(content_type="text/event-stream", body=b": hm\n\n"), CLOSED),
    "too much": (Fault(body=b'{"jsonrpc":"2.0"' + b" " * 5000), TOO_LARGE),
}
CASES = [pytest.param(*values, id=name) for name, values in FAULTS.items()]
protocols = pytest.mark.parametrize("protocol", ["modern", "legacy"])


def settings(timeout_s: float = 5.0) -> McpSettings:
    return McpSettings(allow_private_addresses=True, connect_timeout_s=timeout_s, max_message_bytes=4096)


def settings_for(fault: Fault) -> McpSettings:
    """Only who waits in vain should not wait long."""
    return settings(1.0 if fault.hang else 5.0)


SMALL = McpServerOptions(page_size=4)


@pytest.mark.parametrize(("fault", "error"), [HANGING, *CASES])
async def test_server_that_fails_to_list_has_a_listing_with_an_error(
    declare: Declare, fault: Fault, error: Json
) -> None:
    async with running_mcp_server(SMALL, protocol="legacy") as server, open_mcp_servers(settings_for(fault)) as mcp:
        server.faults["tools/list"] = fault
        failed = await registry_of([declare(server.url)], mcp)
        server.faults.clear()
        recovered = await registry_of([declare(server.url)], mcp)
    assert (listings(failed), failed.function_tools) == ((McpListing("demo", error=error["message"]),), ())
    assert listings(recovered)[0].error is None


@pytest.mark.parametrize(("fault", "error"), CASES)
async def test_call_that_fails_is_a_result_and_is_sent_once(declare: Declare, fault: Fault, error: Json) -> None:
    async with running_mcp_server(SMALL) as server, open_mcp_servers(settings()) as mcp:
        echo = (await registry_of([declare(server.url)], mcp)).gateway_tools["echo"]
        server.faults["tools/call"] = fault
        failed = await echo.call({"text": "x"})
        sent = len(server.calls)
        server.faults.clear()
        recovered = await echo.call({"text": "again"})
    assert (failed, sent, recovered) == (CallResult(None, error), 1, CallResult("again"))


@pytest.mark.parametrize("method", ["server/discover", "initialize"])
async def test_server_that_never_answers_the_handshake_times_out(declare: Declare, method: str) -> None:
    options = McpServerOptions(protocol="legacy", faults={method: Fault(hang=True)})
    async with running_mcp_server(options) as server, open_mcp_servers(settings(0.3)) as mcp:
        registry = await registry_of([declare(server.url)], mcp)
    assert listings(registry) == (McpListing("demo", error=TIMED_OUT["message"]),)


@protocols
async def test_server_that_is_gone_is_unreachable_for_lists_and_calls(declare: Declare, protocol: str) -> None:
    async with open_mcp_servers(settings()) as mcp:
        async with running_mcp_server(protocol=protocol) as server:
            echo = (await registry_of([declare(server.url)], mcp)).gateway_tools["echo"]
        called = await echo.call({"text": "x"})
        listed = await registry_of([declare(server.url)], mcp)
    assert called in (CallResult(None, UNREACHABLE), CallResult(None, CLOSED))
    assert listings(listed) == (McpListing("demo", error=UNREACHABLE["message"]),)


@protocols
async def test_failure_that_the_tool_reports_is_told_in_full(declare: Declare, protocol: str) -> None:
    async with running_mcp_server(SMALL, protocol=protocol) as server, open_mcp_servers(settings()) as mcp:
        tools = (await registry_of([declare(server.url)], mcp)).gateway_tools
        failed = await tools["fail"].call({"message": "missing field `b`"})
        refused = await tools["refuse"].call({})
        unknown = await mcp.call_tool(McpServer(server.url), "gone", {})
    block = {"type": "text", "text": "missing field `b`", "annotations": None, "meta": None}
    assert failed == CallResult(None, {"type": "mcp_tool_execution_error", "content": [block]})
    assert failed.model_text == "missing field `b`"
    assert refused == CallResult(None, protocol_error(-32602, "These parameters cannot be."))
    assert unknown == CallResult(None, protocol_error(-32602, "Unknown tool 'gone'."))
