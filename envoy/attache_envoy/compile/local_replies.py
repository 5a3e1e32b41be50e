"""What Envoy says itself, in the API's error shape.

Envoy answers on its own when a connection cannot be made, a limit is exceeded, or a request is malformed. Its texts
name internals and are replaced by ours, chosen by status. Bodies that a route or an ext_proc service wrote are local
replies to Envoy as well; they are told apart by their response code details and left alone.
Source: `local_reply_config` of the HTTP connection manager.
"""

from __future__ import annotations

from envoy_data_plane.envoy.config.accesslog.v3 import (
    AccessLogFilter,
    AndFilter,
    ComparisonFilter,
    ComparisonFilterOp,
    ExtensionFilter,
    StatusCodeFilter,
)
from envoy_data_plane.envoy.config.core.v3 import RuntimeUInt32, SubstitutionFormatString
from envoy_data_plane.envoy.extensions.access_loggers.filters.cel.v3 import ExpressionFilter
from envoy_data_plane.envoy.extensions.filters.network.http_connection_manager.v3 import (
    LocalReplyConfig,
    ResponseMapper,
)

from attache_core.errors import AttacheError, ClientError, UpstreamError, error_body, internal_error
from attache_envoy.compile.messages import json_text, packed, text

_BY_STATUS: tuple[tuple[int, AttacheError], ...] = (
    (408, ClientError("The request did not arrive in time.", code="request_timeout")),
    (413, ClientError("The request is too large.", code="request_too_large")),
    (431, ClientError("The request's headers are too large.", code="headers_too_large")),
    (502, UpstreamError("The inference server did not answer in HTTP.", code="upstream_error")),
    (503, UpstreamError("The gateway or its inference server cannot be reached now.", code="unavailable")),
    (504, UpstreamError("Nothing was heard for too long.", code="timeout")),
)
_OTHER_CLIENT_ERROR = ClientError("The request cannot be answered as it is.", code="request_refused")

_WRITTEN_BY_OTHERS = ("", "direct_response", "lua_response", "ext_authz_denied")
"""Response code details of local replies with a body of their own: an ext_proc service's (which has none unless the
service gives some), a route's, a script's, an authorization service's."""


def local_replies() -> LocalReplyConfig:
    """JSON bodies for all that Envoy answers on its own."""
    own = _envoys_own()
    exact = [_mapper(own, ComparisonFilterOp.EQ, status, error) for status, error in _BY_STATUS]
    server = _mapper(own, ComparisonFilterOp.GE, 500, internal_error())
    client = _mapper(own, ComparisonFilterOp.GE, 400, _OTHER_CLIENT_ERROR)
    return LocalReplyConfig(mappers=[*exact, server, client])


def _envoys_own() -> AccessLogFilter:
    others = ", ".join(f"'{details}'" for details in _WRITTEN_BY_OTHERS)
    expression = ExpressionFilter(expression=f"has(response.code_details) && !(response.code_details in [{others}])")
    name = "envoy.access_loggers.extension_filters.cel"
    return AccessLogFilter(extension_filter=ExtensionFilter(name=name, typed_config=packed(expression)))


def _mapper(own: AccessLogFilter, comparison: ComparisonFilterOp, status: int, error: AttacheError) -> ResponseMapper:
    # Envoy wants a runtime key, which nothing sets here.
    value = RuntimeUInt32(default_value=status, runtime_key="attache.unused")
    by_status = AccessLogFilter(status_code_filter=StatusCodeFilter(comparison=ComparisonFilter(comparison, value)))
    return ResponseMapper(
        filter=AccessLogFilter(and_filter=AndFilter(filters=[by_status, own])),
        body=json_text(error_body(error)),
        body_format_override=SubstitutionFormatString(
            text_format_source=text("%LOCAL_REPLY_BODY%"), content_type="application/json"
        ),
    )
