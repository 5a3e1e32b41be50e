"""The tools that items of the input declare: `additional_tools`, which Codex sends for some models.

They are tools of the client as if they stood in `tools`. Unaware of what a tool is; see the tool types.
Source: `AdditionalTools` in the `openai` package.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attache_core.errors import ClientError
from attache_core.json_codec import Json
from attache_core.tools.client.claim import claim_of
from attache_core.types.tools import MAX_TOOLS

ADDITIONAL_TOOLS = "additional_tools"


def with_additional_tools(declared: Sequence[Json], history: Iterable[Json]) -> list[Json]:
    """`declared`, and after it what items of the conversation declare besides; of one tool the last declaration.

    Raises:
        ClientError: they are more than `tools` may hold.
    """
    items = [item for item in history if item.get("type") == ADDITIONAL_TOOLS]
    added = {claim_of(tool): tool for item in items for tool in item.get("tools") or ()}
    known = {claim_of(tool) for tool in declared}
    tools = [*declared, *(tool for claim, tool in added.items() if claim not in known)]
    if added and len(tools) > MAX_TOOLS:
        message = f"The request and its items of type '{ADDITIONAL_TOOLS}' declare {len(tools)} tools."
        raise ClientError(f"{message} At most {MAX_TOOLS} are possible.", param="input", code="too_many_tools")
    return tools
