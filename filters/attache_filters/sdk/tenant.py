"""Whose request it is: what Envoy found in the credential, or what the filters above say.

Invariant: a header that is there is believed, or the request is refused; it never falls back to the tenant that
everybody is where no credentials are asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from urllib.parse import unquote

from attache_core.errors import ClientError
from attache_core.storage.row import is_key
from attache_core.types.turn import DEFAULT_TENANT
from attache_filters.extproc.headers import TENANT, VERIFIED_TENANT


def tenant_of(headers: Mapping[str, str]) -> str:
    """The tenant of a request with these headers. Raises ClientError (403): what names it can be no key of a store."""
    if TENANT in headers:
        tenant = unquote(headers[TENANT])
    elif VERIFIED_TENANT in headers:
        tenant = headers[VERIFIED_TENANT]
    else:
        return DEFAULT_TENANT
    if not is_key(tenant):
        message = "The credentials name no tenant: it is 1 to 1024 bytes of valid UTF-8 text without NUL."
        raise ClientError(message, http_status=HTTPStatus.FORBIDDEN, code="permission_denied")
    return tenant
