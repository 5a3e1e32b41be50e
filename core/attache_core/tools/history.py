"""Items of the past as the model is told of them: function calls and their outputs, under the names that it knows.

What a tool type's calls leave behind is the type's to tell (see `ToolType.tellers`); here it is put in its place. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from attache_core.json_codec import Json
from attache_core.tools.approval_history import with_outcomes
from attache_core.tools.client.additional_tools import ADDITIONAL_TOOLS
from attache_core.tools.registry import ToolRegistry
from attache_core.types.items import ORCHESTRATION_ITEMS

_UNTOLD = frozenset({*ORCHESTRATION_ITEMS, ADDITIONAL_TOOLS})


def model_input(items: Sequence[Json], registry: ToolRegistry) -> list[Json]:
    """Items as an inference server understands them.

    The items of tools become the function calls and outputs that the model made and was told, those of calls that were
    asked for in the place of the request; what only orchestration sees is left out, and so are tools, which are in the
    registry; every other item passes as it is.
    """
    told: list[Json] = []
    tellers = registry.tellers
    for position, item in enumerate(with_outcomes(items)):
        kind = item.get("type") or ""
        if kind in tellers:
            told += tellers[kind](item, position, registry)
        elif kind not in _UNTOLD:
            told.append(item)
    return told
