"""Whether a conversation's calls and outputs belong together, as the Responses API checks before it runs a model.

Every output answers exactly one earlier call of its kind, and at the end no client-executed call is left unanswered.
Gateway-executed calls (`mcp_call`) carry their output in the item itself and are never pending.
"""

from __future__ import annotations

from collections.abc import Sequence

from attache_core.errors import ClientError
from attache_core.json_codec import Json

OUTPUT_OF = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}
"""The kinds of calls that a client executes, and the kind of item that answers each."""

_CALL_OF = {output: call for call, output in OUTPUT_OF.items()}
_WORDS = {"function_call": "function call", "custom_tool_call": "custom tool call"}


def check_calls(items: Sequence[Json]) -> None:
    """Check the whole input of a turn, history first.

    Raises:
        ClientError: 400 with `param` `input`, naming the first call or output that has no partner.
    """
    pending: dict[str, str] = {}
    for item in items:
        kind = item.get("type")
        if kind in OUTPUT_OF:
            pending[str(item.get("call_id"))] = str(kind)
        elif kind in _CALL_OF:
            expected = _CALL_OF[str(kind)]
            call_id = str(item.get("call_id"))
            if pending.pop(call_id, None) != expected:
                raise _refused(f"No tool call found for {_WORDS[expected]} output with call_id {call_id}.")
    for call_id, kind in pending.items():
        raise _refused(f"No tool output found for {_WORDS[kind]} {call_id}.")


def _refused(message: str) -> ClientError:
    return ClientError(message, param="input")
