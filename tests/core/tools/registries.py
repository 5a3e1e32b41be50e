"""Registries as the tests of MCP make them and look at them."""

from __future__ import annotations

from collections.abc import Sequence

from attache_core.json_codec import Json
from attache_core.tools.builtin import builtin_tool_types
from attache_core.tools.mcp.items import McpListing
from attache_core.tools.mcp.servers import McpServers
from attache_core.tools.registry import ToolRegistry, build_registry


async def registry_of(tools: Sequence[Json], mcp: McpServers) -> ToolRegistry:
    """A registry of the built-in types."""
    return await build_registry(tools, builtin_tool_types(mcp))


def needs_discovery(tools: Sequence[Json], mcp: McpServers) -> bool:
    """Whether a server would be asked."""
    return builtin_tool_types(mcp).needs_discovery(tools)


def listings(registry: ToolRegistry) -> tuple[McpListing, ...]:
    """What its servers offer."""
    found = tuple(each for each in registry.announcements if isinstance(each, McpListing))
    assert len(found) == len(registry.announcements)
    return found
