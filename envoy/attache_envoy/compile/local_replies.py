"""What Envoy says itself, in the API's error shape.

Envoy answers on its own when a connection cannot be made, a limit is exceeded, or a request is malformed. Its texts
name internals and are replaced by ours, chosen by what went wrong with the inference server (Envoy's response flags),
or else by status. Codes and sentences about an inference server are those that the workers use for the same trouble.
Bodies that a route or an ext_proc service wrote are local replies to Envoy as well; they are told apart by their
response code details and left alone.
Source: `local_reply_config` of the HTTP connection manager; `%RESPONSE_FLAGS%` of access logs.
"""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus

from envoy_data_plane.envoy.config.accesslog.v3 import (
    AccessLogFilter,
    AndFilter,
    ComparisonFilter,
    ComparisonFilterOp,
    ExtensionFilter,
    ResponseFlagFilter,
    StatusCodeFilter,
)
from envoy_data_plane.envoy.config.core.v3 import RuntimeUInt32, SubstitutionFormatString
from envoy_data_plane.envoy.extensions.access_loggers.filters.cel.v3 import ExpressionFilter
from envoy_data_plane.envoy.extensions.filters.network.http_connection_manager.v3 import (
    LocalReplyConfig,
    ResponseMapper,
)

from attache_core.errors import AttacheError, ClientError, UpstreamError, error_body, internal_error
from attache_core.events.error_codes import BAD_ANSWER, BROKE_OFF, OVERLOADED, TIMEOUT, UNAVAILABLE
from attache_envoy.compile.messages import default_header, header, json_text, packed, text

_OUT_OF_REACH = UpstreamError("The inference server is out of reach.", http_status=503, code=UNAVAILABLE)
_BROKE_OFF = UpstreamError("The inference server broke off its answer.", code=BROKE_OFF)
_NOT_HTTP = UpstreamError("The inference server sent what is not an HTTP answer.", code=BAD_ANSWER)
_OVERLOADED = UpstreamError(
    "The inference server has as many requests as it may have.", http_status=503, code=OVERLOADED
)
_SILENT = UpstreamError("The inference server was silent for too long.", http_status=504, code=TIMEOUT)

_BY_FLAG: tuple[tuple[str, AttacheError], ...] = (
    ("UF", _OUT_OF_REACH),  # the connection failed
    ("UH", _OUT_OF_REACH),  # its name leads nowhere
    ("UO", _OVERLOADED),
    ("UT", _SILENT),
    ("UPE", _NOT_HTTP),
    ("UC", _BROKE_OFF),  # the connection ended
    ("UR", _BROKE_OFF),  # the server reset the request
)
_BY_STATUS: tuple[tuple[int, AttacheError], ...] = (
    (
        401,
        ClientError(
            "A valid key or token is needed: send it as `authorization: Bearer …`.",
            http_status=401,
            code="invalid_api_key",
        ),
    ),
    (403, ClientError("The credentials do not allow this.", http_status=403, code="permission_denied")),
    (408, ClientError("The request did not arrive in time.", http_status=408, code="request_timeout")),
    (413, ClientError("The request is too large.", http_status=413, code="request_too_large")),
    (426, ClientError("HTTP/1.1 or later is needed.", http_status=426, code="upgrade_required")),
    (431, ClientError("The request's headers are too large.", http_status=431, code="headers_too_large")),
    (503, AttacheError("The gateway cannot take this request now.", http_status=503, code="unavailable")),
    (504, AttacheError("Nothing was heard for too long.", http_status=504, code="timeout")),
)
_OTHER_CLIENT_ERROR = ClientError("The request cannot be answered as it is.", code="request_refused")

_WRITTEN_BY_OTHERS = ("", "direct_response", "lua_response", "ext_authz_denied")
"""Response code details of local replies with a body of their own: an ext_proc service's (which has none unless the
service gives some), a route's, a script's, an authorization service's."""


def local_replies() -> LocalReplyConfig:
    """JSON bodies for all that Envoy answers on its own, and 502 where the inference server ended an exchange."""
    return LocalReplyConfig(mappers=list(_mappers()))


def _mappers() -> Iterator[ResponseMapper]:
    for flag, error in _BY_FLAG:
        yield _mapper(AccessLogFilter(response_flag_filter=ResponseFlagFilter(flags=[flag])), error, error.http_status)
    for status, error in _BY_STATUS:
        mapper = _mapper(_status(ComparisonFilterOp.EQ, status), error)
        if status == HTTPStatus.UNAUTHORIZED:
            # RFC 9110, section 15.5.2; Envoy itself says more of a token, and nothing of a key.
            mapper.headers_to_add.append(default_header("www-authenticate", "Bearer"))
        yield mapper
    yield _mapper(_status(ComparisonFilterOp.GE, 500), internal_error())
    yield _mapper(_status(ComparisonFilterOp.GE, 400), _OTHER_CLIENT_ERROR)


def _mapper(which: AccessLogFilter, error: AttacheError, status: int | None = None) -> ResponseMapper:
    return ResponseMapper(
        filter=AccessLogFilter(and_filter=AndFilter(filters=[which, _envoys_own()])),
        status_code=status,
        body=json_text(error_body(error)),
        # An exchange that failed before its request was read has no id yet; Envoy overwrites ours with the one it has.
        headers_to_add=[header("x-request-id", "%UNIQUE_ID%")],
        body_format_override=SubstitutionFormatString(
            text_format_source=text("%LOCAL_REPLY_BODY%"), content_type="application/json"
        ),
    )


def _status(comparison: ComparisonFilterOp, status: int) -> AccessLogFilter:
    # Envoy wants a runtime key, which nothing sets here.
    value = RuntimeUInt32(default_value=status, runtime_key="attache.unused")
    return AccessLogFilter(status_code_filter=StatusCodeFilter(comparison=ComparisonFilter(comparison, value)))


def _envoys_own() -> AccessLogFilter:
    others = ", ".join(f"'{details}'" for details in _WRITTEN_BY_OTHERS)
    expression = ExpressionFilter(expression=f"has(response.code_details) && !(response.code_details in [{others}])")
    name = "envoy.access_loggers.extension_filters.cel"
    return AccessLogFilter(extension_filter=ExtensionFilter(name=name, typed_config=packed(expression)))
