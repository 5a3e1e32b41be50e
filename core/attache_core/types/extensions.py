"""What a request may say beyond the API's own vocabulary: installed tool types, items of their calls, known servers.

Shape only; unaware of where they come from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import ValidationInfo

from attache_core.types.mcp_servers import NO_SERVERS, KnownServers
from attache_core.types.shape import Shape


@dataclass(frozen=True, eq=False, slots=True)
class Extensions:
    """Compared by identity, so that what is made of one can be remembered: make one for the life of a process.

    Attributes:
        tools: the shape of each further type of declaration; it may be a type that OpenAI hosts, which then runs here,
            or one of the API's of which more can be done here than without it.
        items: further types of input items; nothing but `id` and `status` of one is looked at.
        mcp_servers: MCP servers that need no `server_url`.
    """

    tools: Mapping[str, type[Shape]] = field(default_factory=dict)
    items: frozenset[str] = frozenset()
    mcp_servers: KnownServers = NO_SERVERS


NO_EXTENSIONS = Extensions()


def extensions_of(info: ValidationInfo) -> Extensions:
    """Those that `shape.check` was given."""
    return NO_EXTENSIONS if info.context is None else info.context
