"""A turn reduced to what a stateless inference server may see of it."""

from __future__ import annotations

from attache_core.errors import ClientError
from attache_core.types.items import ORCHESTRATION_ITEMS
from attache_core.types.turn import TurnRequest

STATE_FIELDS = ("previous_response_id", "background", "max_tool_calls")
"""What a stateless server must not be asked for: the gateway has answered it already."""


def model_request(turn: TurnRequest) -> TurnRequest:
    """The turn as a stateless server may see it: nothing of ours in it, and nothing to be kept there.

    Raises:
        ClientError: it continues a stored response, and no filter above has loaded the history; or it declares a tool
            that no filter above runs, whose credentials are none of the server's business.
    """
    if turn.body.get("previous_response_id") is not None and turn.facts.history_items is None:
        raise ClientError(
            "This endpoint keeps no state: send the whole conversation as 'input' instead of 'previous_response_id'.",
            param="previous_response_id",
            code="unsupported_parameter",
        )
    for index, tool in enumerate(turn.body.get("tools") or ()):
        if tool.get("type") == "mcp":
            raise ClientError(
                "This endpoint runs no MCP tools.", param=f"tools[{index}].type", code="unsupported_value"
            )
    items = turn.body.get("input")
    if isinstance(items, list):
        items = [item for item in items if item.get("type") not in ORCHESTRATION_ITEMS]
    return turn.without(*STATE_FIELDS).with_body(input=items, store=False)
