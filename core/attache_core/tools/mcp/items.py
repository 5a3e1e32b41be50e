"""The public life of `mcp_list_tools` and `mcp_call` items, as OpenAI's API streams it (see its recordings)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from attache_core.events.model_events import ItemAdded, ItemDone, ItemEvent, ModelEvent
from attache_core.json_codec import Json
from attache_core.tools.gateway_tool import CallMade, CallResult
from attache_core.tools.tool_type import ModelNames


@dataclass(frozen=True, slots=True)
class McpListing:
    """What one declared server offers to this request; an `Announcement`.

    Attributes:
        tools: as in an `mcp_list_tools` item: `{name, description, input_schema, annotations: {read_only}}`; those that
            `allowed_tools` admits, in the server's order.
        error: why the server could not be listed, for the item's `error`; then there are no tools.
    """

    server_label: str
    tools: tuple[Json, ...] = ()
    error: str | None = None

    def events(self, history: Sequence[Json]) -> list[ModelEvent]:
        """Nothing where the conversation has seen the list as it is now."""
        return [] if self.error is None and self._is_known(history) else listing_events(self)

    def _is_known(self, history: Sequence[Json]) -> bool:
        listed = [
            item.get("tools")
            for item in history
            if item.get("type") == "mcp_list_tools"
            and item.get("server_label") == self.server_label
            and not item.get("error")
        ]
        return bool(listed) and listed[-1] == list(self.tools)


def listing_events(listing: McpListing) -> list[ModelEvent]:
    """The whole life of a server's list of tools, once it is known or known to have failed."""
    key = f"mcp_list_tools.{listing.server_label}"
    item: Json = {"type": "mcp_list_tools", "server_label": listing.server_label, "tools": list(listing.tools)}
    outcome = "completed" if listing.error is None else "failed"
    return [
        ItemAdded(key, {**item, "tools": []}),
        ItemEvent(key, "response.mcp_list_tools.in_progress"),
        ItemEvent(key, f"response.mcp_list_tools.{outcome}"),
        ItemDone(key, item if listing.error is None else {**item, "error": listing.error}),
    ]


def call_begun(call: CallMade, server_label: str, name: str) -> list[ModelEvent]:
    """A call is being executed."""
    item = _call_item(call, server_label, name, "in_progress")
    return [
        ItemAdded(call.key, {**item, "arguments": ""}),
        ItemEvent(call.key, "response.mcp_call.in_progress"),
        ItemEvent(call.key, "response.mcp_call_arguments.delta", {"delta": call.arguments}),
        ItemEvent(call.key, "response.mcp_call_arguments.done", {"arguments": call.arguments}),
    ]


def call_progressed(call: CallMade) -> list[ModelEvent]:
    """It is still being executed. The API has no event that says how far it has come."""
    return [ItemEvent(call.key, "response.mcp_call.in_progress")]


def call_ended(call: CallMade, server_label: str, name: str, result: CallResult) -> list[ModelEvent]:
    """It was executed, or failed: either way the model is told, and so is the client."""
    status = "completed" if result.error is None else "failed"
    item = {**_call_item(call, server_label, name, status), "error": result.error, "output": result.output}
    return [ItemEvent(call.key, f"response.mcp_call.{status}"), ItemDone(call.key, item)]


def tell_call(item: Json, position: int, names: ModelNames) -> list[Json]:
    """The function call and the output that the model made and was told."""
    given_id = item.get("id")
    call_id = call_id_of(given_id if isinstance(given_id, str) else f"{position}")
    name = names.name_of("mcp", str(item.get("server_label")), str(item.get("name")))
    output = CallResult(item.get("output"), item.get("error")).model_text
    return [
        {"type": "function_call", "call_id": call_id, "name": name, "arguments": item.get("arguments") or "{}"},
        {"type": "function_call_output", "call_id": call_id, "output": output},
    ]


def call_id_of(item_id: str) -> str:
    """The `call_id` under which the model knows the call of an `mcp_call` item: one for the item's whole life."""
    return f"call_{item_id.removeprefix('mcp_')}"


def _call_item(call: CallMade, server_label: str, name: str, status: str) -> Json:
    return {
        "type": "mcp_call",
        "status": status,
        "approval_request_id": call.approval_request_id,
        "arguments": call.arguments,
        "error": None,
        "name": name,
        "output": None,
        "server_label": server_label,
    }
