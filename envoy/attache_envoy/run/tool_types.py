"""The tool types of a worker process that the gateway file, or another package, brings.

The one place where they are made; the API's own that need no section are `attache_core.tools.builtin`'s.
"""

from __future__ import annotations

from attache_core.tools.installed import load_tool_types, make_tool_types
from attache_core.tools.shell.tool_type import GrantedShellType
from attache_core.tools.tool_type import ToolType
from attache_envoy.gateway import Gateway


def tool_types(gateway: Gateway) -> tuple[ToolType, ...]:
    """Those that a section of the gateway file asks for, then those that are installed.

    Raises:
        ConfigError: an installed one cannot be used.
    """
    return (*_web_search(gateway), *_shell(gateway), *make_tool_types(load_tool_types(), gateway.tools))


def _web_search(gateway: Gateway) -> tuple[ToolType, ...]:
    if gateway.web_search is None:
        return ()
    # Imported here because of its HTTP client, which a process without web search need not load.
    from attache_core.tools.web_search.tool_type import WebSearchType  # noqa: PLC0415
    from attache_core.tools.web_search.web_search import WebSearch  # noqa: PLC0415

    return (WebSearchType(WebSearch(gateway.web_search)),)


def _shell(gateway: Gateway) -> tuple[ToolType, ...]:
    return () if gateway.shell is None else (GrantedShellType(gateway.shell),)
