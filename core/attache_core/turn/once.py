"""What must not happen twice: clients repeat a request that failed by HTTP, and with it whatever its tools did.

Source: the official SDKs, which do not repeat a request whose error says `x-should-retry: false`.
"""

from __future__ import annotations

from collections.abc import Sequence

from attache_core.errors import AttacheError
from attache_core.json_codec import Json
from attache_core.turn.pending_calls import OUTPUT_OF

NO_RETRY = {"x-should-retry": "false"}

_NOTHING_RAN = frozenset({"message", "reasoning", "mcp_list_tools", "mcp_approval_request", *OUTPUT_OF})


def forbid_retry(error: AttacheError, output: Sequence[Json]) -> None:
    """Let the error say that its request is not to be repeated, where `output` has an item of a tool that ran here."""
    if any(item.get("type") not in _NOTHING_RAN for item in output):
        error.headers.update(NO_RETRY)
