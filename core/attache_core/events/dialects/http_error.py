"""An inference server's HTTP error answer as the API's error.

Knows the bodies of OpenAI (`{"error": {message, type, param, code}}`), vLLM and SGLang (the same with an integer code
and a Python class for a type, or without `error` around it), llama.cpp (an integer code) and FastAPI (`{"detail": …}`).

Invariants:

- What is wrong with the request keeps its status and words, because the client must act on them.
- What is wrong with the server does not show its words, but for what Envoy says in its place, by a code of ours.
- A refusal of credentials keeps its status and its code and nothing else: its words may repeat a key.
- An input that is too long for the model has the API's code, however the server said it.
- A body that is no API error is never echoed, and never the client's fault.
- Headers that tell a client when to try again go along wherever it may.
"""

from __future__ import annotations

from collections.abc import Mapping

from attache_core import json_codec
from attache_core.errors import SERVER_ERROR, AttacheError, ClientError, UpstreamError
from attache_core.events.dialects.context_length import CONTEXT_LENGTH_EXCEEDED, CONTEXT_PARAM, is_context_overflow
from attache_core.events.error_codes import UPSTREAM_CODES
from attache_core.json_codec import Json

_CREDENTIALS = frozenset({401, 403})
"""About the `authorization` header, which is the client's own."""

_MEANT_FOR_CLIENT = _CREDENTIALS | {413, 429}
"""Statuses that say enough without a readable body; another status without one is a proxy's or a wrong path's."""

_NO_SUCH_PATH = frozenset({404, 405})
"""What a web framework says of a path that it does not have, with a `detail` of its own."""

_ABOUT_INPUT = frozenset({400, 413, 422})
"""Statuses of a request that would fail again as it is."""

_TRY_AGAIN = frozenset({408, 409, 429})
"""Statuses below 500 after which a client may send the same request once more, as OpenAI's SDKs do."""

_SHOWN_AS = {503: 503, 504: 504, 529: 503}
"""Statuses of a server that is overloaded or too slow; any other is 502, for a 500 would read as ours."""

_RETRY_HEADERS = frozenset({"retry-after", "retry-after-ms"})
_RATE_LIMIT_PREFIX = "x-ratelimit-"


def error_from_http(status: int, headers: Mapping[str, str], body: bytes) -> AttacheError:
    """The error to answer with. `headers` have lower-case names; `body` may be cut off."""
    given = _error_fields(status, body)
    if status >= 500:
        return _server_error(status, given or {}, _kept_headers(headers))
    if status < 400 or (given is None and status not in _MEANT_FOR_CLIENT):
        return UpstreamError(f"The inference server's answer with HTTP status {status} is not an API answer.")
    return _refusal(status, given or {}, _kept_headers(headers) if status in _TRY_AGAIN else {})


def _refusal(status: int, given: Mapping[str, object], headers: Mapping[str, str]) -> ClientError:
    code = error_code(given.get("code"), status)
    if status in _CREDENTIALS:
        message = f"The inference server refused the credentials of this request with HTTP status {status}."
        return ClientError(message, http_status=status, code=code)
    message = text(given.get("message")) or f"The inference server refused the request with HTTP status {status}."
    if code is None and status in _ABOUT_INPUT and is_context_overflow(given):
        return ClientError(message, http_status=status, code=CONTEXT_LENGTH_EXCEEDED, param=CONTEXT_PARAM)
    return ClientError(
        message,
        http_status=status,
        error_type=_api_type(given.get("type")),
        code=code,
        param=text(given.get("param")),
        headers=headers,
    )


def _server_error(status: int, given: Mapping[str, object], headers: Mapping[str, str]) -> UpstreamError:
    http_status, code = _SHOWN_AS.get(status, 502), text(given.get("code"))
    if code in UPSTREAM_CODES:
        return UpstreamError(str(given["message"]), http_status=status, code=code, headers=headers)
    message = f"The inference server failed with HTTP status {status}."
    return UpstreamError(message, http_status=http_status, headers=headers)


def stream_error(fields: Mapping[str, object]) -> Json:
    """`{code, message}` of a response that failed, from whatever a server says of an error in a stream."""
    too_long = CONTEXT_LENGTH_EXCEEDED if is_context_overflow(fields) else SERVER_ERROR
    return {
        "code": error_code(fields.get("code")) or too_long,
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


def _kept_headers(headers: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value for name, value in headers.items() if name in _RETRY_HEADERS or name.startswith(_RATE_LIMIT_PREFIX)
    }


def _error_fields(status: int, body: bytes) -> Json | None:
    try:
        value = json_codec.decode(body)
    except ValueError:
        return None
    if not isinstance(value, dict):
        return None
    fields = value.get("error", value)
    if isinstance(fields, str):
        fields = {"message": fields}
    if isinstance(fields, dict) and text(fields.get("message")):
        return fields
    return None if status in _NO_SUCH_PATH else _fastapi_fields(value.get("detail"))


def _fastapi_fields(detail: object) -> Json | None:
    """The error in FastAPI's `detail`: a sentence, or a list of violations, each with its place and its sentence."""
    if text(detail):
        return {"message": detail}
    first = detail[0] if isinstance(detail, list) and detail else None
    if not isinstance(first, dict) or not text(first.get("msg")):
        return None
    place = first.get("loc")
    return {"message": first["msg"], "param": _path(place[1:]) if isinstance(place, list) else None}


def _path(place: list[object]) -> str:
    """`["input", 0, "content"]` as `input[0].content`."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return "".join(steps).removeprefix(".")


def _api_type(value: object) -> str | None:
    """The error's type; a Python class name such as vLLM's `BadRequestError` is no type of the API."""
    name = text(value)
    return name if name is not None and name.islower() else None
