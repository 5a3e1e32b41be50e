"""An HTTP exchange as filters see it: whole requests, streamed responses, header names in lower case."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from attache_core import json_codec


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request whose body has fully arrived.

    Attributes:
        headers: names in lower case, pseudo-headers excluded; repeated headers are joined with ", ".
        path: as in `:path`, the query string included.
    """

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


async def one_chunk(body: bytes) -> AsyncIterator[bytes]:
    """A body that is known whole."""
    if body:
        yield body


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A response whose headers are known and whose body may still be arriving. The body is read once."""

    status: int
    headers: Mapping[str, str]
    body: AsyncIterator[bytes]

    @classmethod
    def of_json(cls, status: int, value: object, headers: Mapping[str, str] | None = None) -> HttpResponse:
        """A JSON response with a known body."""
        return cls(status, {"content-type": "application/json", **(headers or {})}, one_chunk(json_codec.encode(value)))


HttpBelow = Callable[[HttpRequest], Awaitable[HttpResponse]]
"""Sends a request to what is below a filter. May be called zero times, once, or many times."""
