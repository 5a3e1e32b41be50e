"""Where an MCP server is: the outbound policy's answer for the URL that a client declared, in MCP's error shapes."""

from __future__ import annotations

from attache_core.tools.mcp.failure import McpServerError, unreachable
from attache_core.tools.mcp.settings import McpSettings
from attache_core.tools.outbound.policy import Endpoint, OutboundPolicy, UnknownHostError, UrlRefusedError


async def resolve(url: str, settings: McpSettings) -> Endpoint:
    """Judge a server URL by the settings of the section `mcp`, and resolve it.

    Raises:
        McpServerError: the policy refuses it, or its host has no address.
    """
    try:
        return await OutboundPolicy("mcp", settings, login="`authorization` or `headers`").resolve(url)
    except UrlRefusedError as refused:
        raise McpServerError(unreachable(f"The MCP server's URL is refused: {refused.reason}.")) from None
    except UnknownHostError as unknown:
        raise McpServerError(unreachable(f"The MCP server's host name {unknown.reason}.")) from None
