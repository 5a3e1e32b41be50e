"""A request as the bytes that are sent. Pure. Source: RFC 9112, sections 3 to 6; RFC 9110, section 5."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_NOT_IN_A_TARGET = re.compile(r"[\x00-\x20\x7f]")
_NOT_IN_A_VALUE = re.compile(r"[\x00\r\n]")
_FRAMING = frozenset({"content-length", "transfer-encoding"})


@dataclass(frozen=True, slots=True)
class Http1Request:
    """One request.

    Attributes:
        target: what stands in the request line: path and query.
        headers: `host` among them; none that says how long the body is, which is added.
    """

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes = b""

    def encode(self) -> bytes:
        """The bytes of it. Text that is no UTF-8 may be given as surrogate escapes.

        Raises:
            ValueError: a part of it would be read as something else than what it is.
        """
        if not _TOKEN.fullmatch(self.method) or not self.target or _NOT_IN_A_TARGET.search(self.target):
            raise ValueError("a request line must be a method and a target, without spaces in either")
        lines = [f"{self.method} {self.target} HTTP/1.1", *map(_line, self.headers.items())]
        lines += [f"content-length: {len(self.body)}", "", ""]
        return "\r\n".join(lines).encode("utf-8", "surrogateescape") + self.body


def _line(header: tuple[str, str]) -> str:
    name, value = header
    if not _TOKEN.fullmatch(name) or name.lower() in _FRAMING or _NOT_IN_A_VALUE.search(value):
        raise ValueError(f"not a header: {name[:64]!r} with a value of {len(value)} characters")
    return f"{name}: {value}"
