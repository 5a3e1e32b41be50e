"""What the HTTP client raises, in the API's error shapes. Unaware of what was asked, and of whom."""

from __future__ import annotations

import httpx2

from attache_core.json_codec import Json
from attache_core.tools.call_errors import REQUEST_TIMEOUT, protocol_error
from attache_core.tools.mcp.failure import TIMED_OUT, closed, too_large, unreachable


def error_object(error: Exception) -> Json:
    """The public error object; a `DecodingError` stands for an answer over its limit."""
    if isinstance(error, (httpx2.ConnectError, httpx2.ConnectTimeout)):
        return unreachable()
    if isinstance(error, httpx2.DecodingError):
        return too_large()
    if isinstance(error, (httpx2.TimeoutException, TimeoutError)):
        return protocol_error(REQUEST_TIMEOUT, TIMED_OUT)
    return closed()
