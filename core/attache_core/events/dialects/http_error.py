"""An inference server's HTTP error answer as the API's error.

Knows the bodies of OpenAI (`{"error": {message, type, param, code}}`), vLLM (the same with an integer code and a Python
class for a type, or without `error` around it) and llama.cpp (an integer code). Invariants: what is wrong with the
request keeps its status and words, because the client must act on them; what is wrong with the server does not show
its words, but for what Envoy says in its place, by a code of ours; a body that is no API error is never echoed.
"""

from __future__ import annotations

from collections.abc import Mapping

from attache_core import json_codec
from attache_core.errors import SERVER_ERROR, AttacheError, ClientError, UpstreamError
from attache_core.events.error_codes import UPSTREAM_CODES
from attache_core.json_codec import Json

_MEANT_FOR_CLIENT = frozenset({401, 403, 413, 429})
"""Statuses that say enough without a readable body; another status without one is a proxy's or a wrong path's."""

_KEPT_5XX = frozenset({503, 504})
"""A 500 of the server would read as ours."""


def error_from_http(status: int, headers: Mapping[str, str], body: bytes) -> AttacheError:
    """The error to answer with. `headers` have lower-case names; `body` may be cut off."""
    kept = {"retry-after": headers["retry-after"]} if status in (429, 503) and "retry-after" in headers else {}
    given = _error_fields(body)
    if status >= 500:
        return _server_error(status, given or {}, kept)
    if status < 400 or (given is None and status not in _MEANT_FOR_CLIENT):
        return UpstreamError(f"The inference server's answer with HTTP status {status} is not an API answer.")
    fields = given or {}
    return ClientError(
        text(fields.get("message")) or f"The inference server refused the request with HTTP status {status}.",
        http_status=status,
        error_type=_api_type(fields.get("type")),
        code=error_code(fields.get("code"), status),
        param=text(fields.get("param")),
        headers=kept,
    )


def _server_error(status: int, given: Mapping[str, object], headers: Mapping[str, str]) -> UpstreamError:
    code = text(given.get("code"))
    if code in UPSTREAM_CODES:
        return UpstreamError(str(given["message"]), http_status=status, code=code, headers=headers)
    http_status = status if status in _KEPT_5XX else 502
    message = f"The inference server failed with HTTP status {status}."
    return UpstreamError(message, http_status=http_status, headers=headers)


def stream_error(fields: Mapping[str, object]) -> Json:
    """`{code, message}` of a response that failed, from whatever a server says of an error in a stream."""
    return {
        "code": error_code(fields.get("code")) or SERVER_ERROR,
        "message": text(fields.get("message")) or "The inference server failed.",
    }


def error_code(code: object, status: int | None = None) -> str | None:
    """A code as a string; an integer that only repeats an HTTP status says nothing."""
    if isinstance(code, int) and not isinstance(code, bool):
        return None if code == status or 100 <= code <= 599 else str(code)
    return text(code)


def text(value: object) -> str | None:
    """`value` if it is a string that says something."""
    return value if isinstance(value, str) and value else None


def _error_fields(body: bytes) -> Json | None:
    try:
        value = json_codec.decode(body)
    except ValueError:
        return None
    if not isinstance(value, dict):
        return None
    fields = value.get("error", value)
    if isinstance(fields, str):
        fields = {"message": fields}
    return fields if isinstance(fields, dict) and text(fields.get("message")) else None


def _api_type(value: object) -> str | None:
    """The error's type; a Python class name such as vLLM's `BadRequestError` is no type of the API."""
    name = text(value)
    return name if name is not None and name.islower() else None
