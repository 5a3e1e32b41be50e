"""Where an MCP server is: the outbound policy's answer for its URL, in MCP's error shapes.

The policy is about URLs that clients give. One that the operator wrote into the gateway file may lead anywhere; it is
resolved once and pinned all the same.
"""

from __future__ import annotations

from attache_core.tools.mcp.failure import McpServerError, unreachable
from attache_core.tools.mcp.server import McpServer
from attache_core.tools.mcp.settings import McpSettings
from attache_core.tools.outbound.policy import Endpoint, OutboundPolicy, UnknownHostError, UrlRefusedError
from attache_core.tools.outbound.settings import OutboundSettings

_ANYWHERE = OutboundSettings(allow_private_addresses=True)


async def resolve(server: McpServer, settings: McpSettings) -> Endpoint:
    """Judge a server's URL by the settings of the section `mcp`, and resolve it.

    Raises:
        McpServerError: the policy refuses it, or its host has no address.
    """
    try:
        where = _ANYWHERE if server.is_operators else settings
        return await OutboundPolicy("mcp", where, login="`authorization` or `headers`").resolve(server.url)
    except UrlRefusedError as refused:
        raise McpServerError(unreachable(f"The MCP server's URL is refused: {refused.reason}.")) from None
    except UnknownHostError as unknown:
        raise McpServerError(unreachable(f"The MCP server's host name {unknown.reason}.")) from None
