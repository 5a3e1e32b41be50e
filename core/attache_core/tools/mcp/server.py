"""An MCP server that is to be reached: a URL, credentials, and what the operator said of it. Values only.

Invariant: no text form of these values shows a credential, nor the URL, whose path or query may be one.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property

from attache_core import json_codec
from attache_core.tools.mcp.named_server import Transport
from attache_core.tools.outbound.credentials import Credentials

__all__ = ["Credentials", "McpServer"]


@dataclass(frozen=True, eq=False)
class McpServer:
    """Where a server is and how to authenticate there. Compare by `key`.

    Attributes:
        transport: how it is spoken to.
        is_operators: the operator wrote its URL, so the outbound policy, which is about those of clients, lets it be.
    """

    url: str = field(repr=False)
    credentials: Credentials = field(default_factory=Credentials)
    transport: Transport = "auto"
    is_operators: bool = False

    @cached_property
    def key(self) -> str:
        """Equal for two declarations that may share a session and a tool list; tells nothing of what it was made of."""
        facts = [self.url, sorted(self.credentials.reveal().items()), self.transport, self.is_operators]
        return hashlib.sha256(json_codec.encode(facts)).hexdigest()
