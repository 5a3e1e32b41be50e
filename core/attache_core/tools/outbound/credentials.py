"""The HTTP headers by which the gateway proves to one server on whose behalf it asks."""

from __future__ import annotations

from collections.abc import Mapping

from attache_core.secret import HIDDEN, Secret
from attache_core.tools.outbound.secret import redacted

_MIN_VALUE_LENGTH = 8


class Credentials(Secret[dict[str, str]]):
    """Headers for one server and no other. Prints as `Credentials([redacted])`."""

    __slots__ = ()

    def __init__(self, headers: Mapping[str, str] | None = None, authorization: str | None = None) -> None:
        """`authorization` is a bearer token without its scheme; it wins over an `Authorization` header."""
        given = {name.lower(): value for name, value in (headers or {}).items()}
        if authorization is not None:
            given["authorization"] = f"Bearer {authorization}"
        super().__init__(given)

    def reveal(self) -> dict[str, str]:
        """The headers, names in lower case. For the connection, and for nothing that is kept or printed."""
        return dict(super().reveal())

    def redact_values(self, text: str) -> str:
        """`text` without whole values of eight characters or more; shorter ones may well stand there by themselves."""
        values = self.reveal().values()
        for value in sorted({*values, *(value.partition(" ")[2] for value in values)}, key=len, reverse=True):
            if len(value) >= _MIN_VALUE_LENGTH:
                text = text.replace(value, HIDDEN)
        return text

    def redact(self, text: str) -> str:
        """`text` without the values of the headers, as a server may have echoed them."""
        return redacted(text, self.reveal().values())
