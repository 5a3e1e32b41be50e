"""An MCP server as a request declares it: a URL and credentials. Values only.

Invariant: no text form of these values shows a credential, nor the URL, whose path or query may be one.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property

from attache_core import json_codec
from attache_core.tools.outbound.credentials import Credentials

__all__ = ["Credentials", "McpServer"]


@dataclass(frozen=True, eq=False)
class McpServer:
    """Where a server is and how to authenticate there. Compare by `key`."""

    url: str = field(repr=False)
    credentials: Credentials = field(default_factory=Credentials)

    @cached_property
    def key(self) -> str:
        """Equal for two declarations that may share a session and a tool list; tells nothing of what it was made of."""
        facts = [self.url, sorted(self.credentials.reveal().items())]
        return hashlib.sha256(json_codec.encode(facts)).hexdigest()
