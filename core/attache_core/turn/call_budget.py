"""How much one turn may have of its gateway-executed tools: calls, and bytes of their results.

A call over the budget is not run; the model is told so, and the turn goes on. The API's `max_tool_calls` is such a
budget too (API reference, "max_tool_calls").
"""

from __future__ import annotations

from dataclasses import dataclass

from attache_core.events.item_assembly import ByteBudget
from attache_core.json_codec import Json, encode
from attache_core.tools.call_errors import INTERNAL_ERROR, protocol_error
from attache_core.tools.gateway_tool import CallResult, GatewayTool


@dataclass(frozen=True, slots=True)
class RefusedTool:
    """Stands for a tool whose call is over the budget; a `GatewayTool`."""

    server_label: str
    name: str

    async def call(self, arguments: Json) -> CallResult:
        """Run nothing."""
        return _refused("No more tool calls are allowed in this response: answer with what is known.")


class CallBudget:
    """The budget of one turn; it only ever shrinks."""

    def __init__(self, *, max_calls: int, max_output_bytes: int, retained: ByteBudget) -> None:
        """`retained` is what may be kept of the whole response; results are kept in it."""
        self._calls_left = max_calls
        self._bytes_left = max_output_bytes
        self._retained = retained

    def admit(self, tool: GatewayTool) -> GatewayTool:
        """The tool to call: `tool`, or one that refuses."""
        if self._calls_left <= 0:
            return RefusedTool(tool.server_label, tool.name)
        self._calls_left -= 1
        return tool

    def charge(self, result: CallResult) -> CallResult:
        """The result to keep: `result`, or an error where it would be too much.

        Raises:
            UpstreamError: the response has become larger than may be kept of it.
        """
        size = len(encode([result.output, result.error]))
        if size > self._bytes_left:
            return _refused("The results of this response's tool calls are too large together: this one is left out.")
        self._bytes_left -= size
        self._retained.spend(size)
        return result


def _refused(message: str) -> CallResult:
    return CallResult(None, protocol_error(INTERNAL_ERROR, message))
