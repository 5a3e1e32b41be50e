"""Whether a conversation's calls and outputs belong together, as the Responses API checks before it runs a model.

Every output answers exactly one earlier call of its kind (see `OUTPUT_OF` and `_ALSO_ANSWERS`), and at the end no
client-executed call is left unanswered. Gateway-executed calls (`mcp_call`) and those of hosted tools carry their
output in the item itself, or have no `call_id`, and are never pending.
"""

from __future__ import annotations

from collections.abc import Sequence

from attache_core.errors import ClientError
from attache_core.json_codec import Json
from attache_core.tools.function_items import pair_id

OUTPUT_OF = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "shell_call": "shell_call_output",
    "local_shell_call": "local_shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
    "computer_call": "computer_call_output",
    "tool_search_call": "tool_search_output",
}
"""The kinds of calls that a client executes, and the kind of item that answers each."""

_CALL_OF = {output: call for call, output in OUTPUT_OF.items()}

_PAIRED = frozenset({*OUTPUT_OF, *_CALL_OF})

_ALSO_ANSWERS = frozenset({("function_call_output", "local_shell_call")})
"""Outputs of another kind that the API takes too: what Codex ran in a local shell, it answers as a function."""


def check_calls(items: Sequence[Json]) -> None:
    """Check the whole input of a turn, history first.

    Raises:
        ClientError: 400 with `param` `input`, naming the first call or output that has no partner.
    """
    pending: dict[str, str] = {}
    for item in items:
        kind = item.get("type")
        if kind not in _PAIRED:
            continue
        call_id = pair_id(item)
        if call_id is None:
            continue
        if kind in OUTPUT_OF:
            pending[call_id] = str(kind)
        else:
            expected, call = _CALL_OF[str(kind)], pending.pop(call_id, None)
            if call != expected and (kind, call) not in _ALSO_ANSWERS:
                raise _refused(f"No tool call found for {_words(expected)} output with call_id {call_id}.")
    for call_id, kind in pending.items():
        raise _refused(f"No tool output found for {_words(kind)} {call_id}.")


def _words(kind: str) -> str:
    return kind.replace("_", " ")


def _refused(message: str) -> ClientError:
    return ClientError(message, param="input")
