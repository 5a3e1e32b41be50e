"""The filter `resources`: finds the endpoint that a request is for, and lets it answer.

Invariant: nothing that is asked of the state of this gateway is ever passed below.
"""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import unquote, urlsplit

from pydantic import Field

from attache_core.errors import ClientError
from attache_core.types.violation import quoted
from attache_filters.builtin.resources.endpoint import Call, Endpoint
from attache_filters.builtin.resources.endpoints import ENDPOINTS
from attache_filters.builtin.resources.readiness import answer_ready
from attache_filters.sdk.filter import FilterConfig, HttpFilter, Services
from attache_filters.sdk.http import HttpBelow, HttpRequest, HttpResponse
from attache_filters.sdk.tenant import tenant_of


class ResourcesConfig(FilterConfig):
    ready_timeout_s: float = Field(default=5.0, gt=0, le=60)
    """Seconds that the store and the inference server have to answer `GET /ready`."""


class Resources(HttpFilter[ResourcesConfig]):
    """Answers the endpoints of responses and conversations from the store, and `GET /ready` from the store and the
    inference server."""

    config_type = ResourcesConfig

    def __init__(self, config: ResourcesConfig, services: Services) -> None:
        super().__init__(config, services)
        self._extensions = services.extensions

    async def __call__(self, request: HttpRequest, below: HttpBelow) -> HttpResponse:
        url = urlsplit(request.path)
        if request.method == "GET" and url.path == "/ready":
            return await answer_ready(self.services.store, request, below, self.config.ready_timeout_s)
        endpoint, ids = _endpoint(request.method, url.path)
        tenant = tenant_of(request.headers)
        call = Call(self.services.store, tenant, self._extensions, ids, url.query, request.body)
        return await endpoint.answer(call)


def _endpoint(method: str, path: str) -> tuple[Endpoint, tuple[str, ...]]:
    """The endpoint, and the ids in its path. Raises ClientError: 404 for the path, 405 for the method."""
    at_path = [(each, found) for each in ENDPOINTS if (found := each.path.fullmatch(path))]
    for endpoint, found in at_path:
        if endpoint.method == method:
            return endpoint, tuple(map(unquote, found.groups()))
    if not at_path:
        message = f"Invalid URL ({method} {path})"
        raise ClientError(message, http_status=HTTPStatus.NOT_FOUND, code="unknown_url")
    allowed = ", ".join(sorted({endpoint.method for endpoint, _ in at_path}))
    raise ClientError(
        f"Not allowed to {method} on {quoted(path)}. Allowed here: {allowed}.",
        http_status=HTTPStatus.METHOD_NOT_ALLOWED,
        code="method_not_supported",
        headers={"allow": allowed},
    )
