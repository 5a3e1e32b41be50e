"""The errors of a turn, split by who must act on them, and their one wire shape.

An error is raised where it is found and answered in one place, the host: as an HTTP error before the first byte of
the response, as a terminal `response.failed` after it. Anything that is not an `AttacheError` is a bug of ours: 500,
logged with its traceback, its text never shown.

    AttacheError
    ├── ClientError      4xx: the request must change
    ├── UpstreamError    the inference server failed, or said something that is not an answer
    ├── StoreError       503: the store is out of reach; the same request may succeed later
    ├── ToolError        told to the model as the result of its call; the turn goes on
    └── ConfigError      the gateway file must change; raised at start-up only
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

INVALID_REQUEST = "invalid_request_error"
SERVER_ERROR = "server_error"


class AttacheError(Exception):
    """What went wrong, in the terms of the OpenAI error object.

    Attributes:
        message: a sentence that says what would be right; shown to clients.
        http_status: 400 to 599.
        type: `invalid_request_error`, `server_error`, or what an inference server said.
        code: a stable machine-readable word, or None.
        param: the path of the offending field, such as `input[3].content[0].type`, or None.
        headers: response headers that belong to the error, such as `retry-after`.
    """

    default_status = 500
    default_type = SERVER_ERROR

    def __init__(  # noqa: PLR0913 - the fields of the error object, all by name
        self,
        message: str,
        *,
        http_status: int | None = None,
        error_type: str | None = None,
        code: str | None = None,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.http_status = self.default_status if http_status is None else http_status
        self.type = self.default_type if error_type is None else error_type
        self.code = code
        self.param = param
        self.headers = dict(headers or {})


class ClientError(AttacheError):
    """The request cannot be answered as it is."""

    default_status = 400
    default_type = INVALID_REQUEST


class UpstreamError(AttacheError):
    """The inference server could not be reached, failed, or sent what is not an answer."""

    default_status = 502


class StoreError(AttacheError):
    """The store is out of reach, or took too long."""

    default_status = 503

    def __init__(self, message: str, *, retry_after_s: int = 1) -> None:
        super().__init__(message, code="store_unavailable", headers={"retry-after": str(retry_after_s)})


class ToolError(AttacheError):
    """A gateway-executed tool call failed; the model is told."""


class ConfigError(AttacheError):
    """The gateway file cannot be used. The message names the file, the line and the key."""


def internal_error() -> AttacheError:
    """What a client is told of a bug: nothing but that it is ours."""
    return AttacheError("The gateway failed to process this request.", code="internal_error")


def error_object(error: AttacheError) -> dict[str, Any]:
    """`{message, type, param, code}`, as in the body of an HTTP error and in an `error` event."""
    return {"message": error.message, "type": error.type, "param": error.param, "code": error.code}


def error_body(error: AttacheError) -> dict[str, Any]:
    """`{"error": {message, type, param, code}}`: the body of every HTTP error (OpenAI API reference, "Errors")."""
    return {"error": error_object(error)}


def error_from_body(http_status: int, body: object, headers: Mapping[str, str] | None = None) -> AttacheError:
    """Read back what `error_body` wrote, or what an OpenAI-compatible server sends; tolerant of missing fields."""
    given = body.get("error") if isinstance(body, Mapping) else None
    fields: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    kind: type[AttacheError] = ClientError if http_status < 500 else UpstreamError
    return kind(
        _text(fields.get("message")) or f"The request failed with HTTP status {http_status}.",
        http_status=http_status,
        error_type=_text(fields.get("type")),
        code=_text(fields.get("code")),
        param=_text(fields.get("param")),
        headers=headers,
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
