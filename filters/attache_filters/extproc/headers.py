"""The names of headers and metadata that cross a boundary of the host, and which headers stop at it.

Every header of ours begins with `x-attache-`: Envoy removes that prefix from what clients send and from what the
inference server gets, so the names may grow without touching Envoy's configuration.
"""

from __future__ import annotations

from collections.abc import Mapping

INTERNAL_PREFIX = "x-attache-"

SEGMENT_METADATA_KEY = "x-attache-segment"
"""Invocation metadata of an ext_proc stream: the name of the segment that it is for."""

RESPONSE_ID = "x-attache-response-id"
"""`Facts.response_id`."""

HISTORY_ITEMS = "x-attache-history-items"
"""`Facts.history_items`, in decimal."""

CONVERSATION_REVISION = "x-attache-conversation-revision"
"""`Facts.conversation_revision`, in decimal."""

VERIFIED_TENANT = "x-attache-verified-tenant"
"""Whose request it is, as Envoy found it in a credential: UTF-8, not encoded in any way. Told to the first filter only;
absent where a gateway asks for no credentials."""

TENANT = "x-attache-tenant"
"""`Facts.tenant`, percent-encoded: what filters tell those below them."""

STORED = "x-attache-stored"
"""`Facts.stored`: `true`, or absent."""

REQUEST_ID = "x-request-id"
"""What an exchange is called, by its client or by Envoy, in every request that it causes and in its answer."""

JSON_TYPE = "application/json"
EVENT_STREAM_TYPE = "text/event-stream"

HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""They concern one connection (RFC 9110, section 7.6.1) and never travel on."""

_NEVER_IN_REQUESTS = HOP_BY_HOP | {"content-length", "content-encoding", "accept-encoding", "expect"}
_NEVER_IN_RESPONSES = HOP_BY_HOP | {"content-length"}


def request_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """What may go down with a request: its body is whole and decoded, and no coding is asked for in return."""
    return {name: value for name, value in headers.items() if name not in _NEVER_IN_REQUESTS}


def response_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """What may go up with a response: nothing of one connection, no length, and no header of ours."""
    return {
        name: value
        for name, value in headers.items()
        if name not in _NEVER_IN_RESPONSES and not name.startswith(INTERNAL_PREFIX)
    }


def media_type(headers: Mapping[str, str]) -> str:
    """The `content-type` without its parameters, in lower case; empty when there is none."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()
