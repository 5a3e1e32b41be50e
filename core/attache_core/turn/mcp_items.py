"""The public life of `mcp_list_tools` and `mcp_call` items, as OpenAI's API streams it (see its recordings)."""

from __future__ import annotations

from attache_core.events.model_events import ItemAdded, ItemDone, ItemEvent, ModelEvent
from attache_core.json_codec import Json
from attache_core.tools.registry import McpListing
from attache_core.tools.scheduler import CallResult
from attache_core.turn.round_view import HeldCall


def listing_events(key: str, listing: McpListing) -> list[ModelEvent]:
    """The whole life of a server's list of tools, once it is known or known to have failed."""
    item: Json = {"type": "mcp_list_tools", "server_label": listing.server_label, "tools": list(listing.tools)}
    outcome = "completed" if listing.error is None else "failed"
    return [
        ItemAdded(key, {**item, "tools": []}),
        ItemEvent(key, "response.mcp_list_tools.in_progress"),
        ItemEvent(key, f"response.mcp_list_tools.{outcome}"),
        ItemDone(key, item if listing.error is None else {**item, "error": listing.error}),
    ]


def call_begun(call: HeldCall) -> list[ModelEvent]:
    """A call is being executed."""
    return [
        ItemAdded(call.key, {**_call_item(call, "in_progress"), "arguments": ""}),
        ItemEvent(call.key, "response.mcp_call.in_progress"),
        ItemEvent(call.key, "response.mcp_call_arguments.delta", {"delta": call.arguments}),
        ItemEvent(call.key, "response.mcp_call_arguments.done", {"arguments": call.arguments}),
    ]


def call_ended(call: HeldCall, result: CallResult) -> list[ModelEvent]:
    """It was executed, or failed: either way the model is told, and so is the client."""
    status = "completed" if result.error is None else "failed"
    item = {**_call_item(call, status), "error": result.error, "output": result.output}
    return [ItemEvent(call.key, f"response.mcp_call.{status}"), ItemDone(call.key, item)]


def _call_item(call: HeldCall, status: str) -> Json:
    return {
        "type": "mcp_call",
        "status": status,
        "approval_request_id": None,
        "arguments": call.arguments,
        "error": None,
        "name": call.tool.name,
        "output": None,
        "server_label": call.tool.server_label,
    }
