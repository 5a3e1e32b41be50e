"""An MCP server as a request declares it: a URL and credentials. Values only.

Invariant: no text form of these values shows a credential, nor the URL, whose path or query may be one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from attache_core import json_codec

_MIN_SECRET_LENGTH = 4
_HIDDEN = "[redacted]"


class Credentials:
    """The HTTP headers that a client wants its MCP server to get. Prints as `Credentials([redacted])`."""

    __slots__ = ("_headers",)

    def __init__(self, headers: Mapping[str, str] | None = None, authorization: str | None = None) -> None:
        """`authorization` is a bearer token without its scheme; it wins over an `Authorization` header."""
        given = {name.lower(): value for name, value in (headers or {}).items()}
        if authorization is not None:
            given["authorization"] = f"Bearer {authorization}"
        self._headers = given

    def reveal(self) -> dict[str, str]:
        """The headers, names in lower case. For the connection, and for nothing that is kept or printed."""
        return dict(self._headers)

    def redact(self, text: str) -> str:
        """`text` without the values of the headers, as a server may have echoed them."""
        secrets = {part for value in self._headers.values() for part in (value, *re.split(r"[\s,;=]+", value))}
        for secret in sorted(secrets, key=len, reverse=True):
            if len(secret) >= _MIN_SECRET_LENGTH and secret.lower() != "bearer":
                text = text.replace(secret, _HIDDEN)
        return text

    def __repr__(self) -> str:
        return f"Credentials({_HIDDEN})"


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
