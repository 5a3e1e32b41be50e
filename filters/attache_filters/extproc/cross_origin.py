"""Keeps web pages from driving a gateway that their reader's browser can reach.

A browser lets any page send a "simple" POST anywhere, without asking the server first; one of the JSON type it asks
for (Fetch standard, "CORS-safelisted request-header" and "CORS-preflight fetch"), and Envoy's CORS filter or nobody
allows it. So a POST that says it comes from a page must be JSON. Every other method that does something is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping

from attache_core.errors import ClientError
from attache_filters.extproc.headers import JSON_TYPE, media_type


def check_origin(method: str, headers: Mapping[str, str]) -> None:
    """Refuse what any web page could have sent. Raises ClientError (415)."""
    if method == "POST" and "origin" in headers and media_type(headers) != JSON_TYPE:
        message = f"A request with an 'Origin' header must have the content type '{JSON_TYPE}'."
        raise ClientError(message, http_status=415, code="unsupported_content_type")
