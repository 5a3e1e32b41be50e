"""The error of a failed response as the HTTP error that says so, for as long as a client has no HTTP status yet."""

from __future__ import annotations

from typing import Final

from attache_core.errors import AttacheError, ClientError, UpstreamError
from attache_core.events.error_codes import OVERLOADED, REQUEST_CODES, TIMEOUT, UNAVAILABLE
from attache_core.json_codec import Json

_STATUSES: Final = {"rate_limit_exceeded": 429, UNAVAILABLE: 503, OVERLOADED: 503, TIMEOUT: 504}
"""HTTP statuses of codes; 502 for every other one."""


def error_of(failed: Json | None) -> AttacheError:
    """The error to raise for a response whose `error` is `failed`."""
    error: Json = failed or {}
    code, message = error.get("code"), error.get("message") or "The inference server failed."
    if code in REQUEST_CODES:
        return ClientError(message, code=code)
    return UpstreamError(message, http_status=_STATUSES.get(str(code), 502), code=code)
