"""The tool types that come with the gateway. Nothing but how they are made tells them apart from installed ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attache_core.tools.client.apply_patch import ApplyPatchType
from attache_core.tools.client.custom import CustomType
from attache_core.tools.client.function import FunctionType
from attache_core.tools.client.local_shell import LocalShellType
from attache_core.tools.client.namespace import NamespaceType
from attache_core.tools.client.shell import ShellType
from attache_core.tools.client.tool_search import ToolSearchType
from attache_core.tools.function_items import HOSTED_ITEMS
from attache_core.tools.mcp.servers import McpServers
from attache_core.tools.mcp.tool_type import McpToolType
from attache_core.tools.tool_type import Teller, ToolType
from attache_core.tools.tool_types import ToolTypes

CLIENT_TYPES: tuple[type[ToolType], ...] = (
    FunctionType,
    CustomType,
    NamespaceType,
    ToolSearchType,
    ShellType,
    LocalShellType,
    ApplyPatchType,
)
"""Those whose calls the client executes."""

BUILTIN_TYPES: tuple[type[ToolType], ...] = (*CLIENT_TYPES, McpToolType)

BUILTIN_TELLERS: Mapping[str, Teller] = {
    **HOSTED_ITEMS,
    **{name: teller for each in BUILTIN_TYPES for name, teller in each.tellers.items()},
}
"""How a model is told of the items of the API's tools."""


def builtin_tool_types(mcp: McpServers, further: Iterable[ToolType] = ()) -> ToolTypes:
    """The built-in types and `further` ones, which go before a built-in type of the same name."""
    types = (*(each() for each in CLIENT_TYPES), McpToolType(mcp), *further)
    settings = mcp.settings
    return ToolTypes(types, max_tools=settings.max_tools_per_request, mcp_servers=settings.known_servers)
