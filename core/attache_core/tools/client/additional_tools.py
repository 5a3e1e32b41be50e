"""The tools that items of the input declare: `additional_tools`, which Codex sends for some models.

They are tools of the client as if they stood in `tools`. Unaware of what a tool is; see the tool types.
Source: `AdditionalTools` in the `openai` package.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attache_core.json_codec import Json
from attache_core.tools.client.claim import claim_of

ADDITIONAL_TOOLS = "additional_tools"


def with_additional_tools(declared: Sequence[Json], history: Iterable[Json]) -> list[Json]:
    """`declared`, and after it what items of the conversation declare besides; of one tool the last declaration."""
    items = [item for item in history if item.get("type") == ADDITIONAL_TOOLS]
    added = {claim_of(tool): tool for item in items for tool in item.get("tools") or ()}
    known = {claim_of(tool) for tool in declared}
    return [*declared, *(tool for key, tool in added.items() if key not in known)]
