"""The tool type `namespace`: functions and custom tools under a common name.

The model knows each member by a name of its own, the namespace's before the member's; the client gets the two apart.
The description of a namespace is told with its first member.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from attache_core.json_codec import Json
from attache_core.tools.client.custom import offered_custom
from attache_core.tools.client.function import offered_function
from attache_core.tools.tool_type import Offer, OfferedTool, ToolType, described
from attache_core.types.tools import SHAPES


class NamespaceType(ToolType):
    """Functions and custom tools under a common name, which the client executes."""

    shapes: ClassVar = {"namespace": SHAPES["namespace"]}

    async def offer(self, declaration: Json) -> Offer:
        """Each member; all of them are deferred where the namespace is."""
        deferred = declaration.get("defer_loading") is True
        members = [_member(tool, declaration["name"]) for tool in declaration["tools"]]
        members = [replace(member, deferred=deferred or member.deferred) for member in members]
        return Offer(tuple(described(members, declaration["name"], declaration.get("description"))))


def _member(tool: Json, namespace: str) -> OfferedTool:
    return (offered_function if tool["type"] == "function" else offered_custom)(tool, namespace)
