"""`resources`: what is answered from the store without asking a model, and whether the gateway is ready."""

from __future__ import annotations

import re
from http import HTTPStatus
from urllib.parse import parse_qs, unquote, urlsplit

from attache_core.errors import ClientError, UpstreamError
from attache_core.types.turn import DEFAULT_TENANT
from attache_filters.sdk.filter import FilterConfig, HttpFilter
from attache_filters.sdk.http import HttpBelow, HttpRequest, HttpResponse

RESPONSE_PATH = re.compile(r"/v1/responses/([^/]+)")
RESPONSE_ID = re.compile(r"resp_[A-Za-z0-9_-]{1,59}")
MODELS_PATH = "/v1/models"


class Resources(HttpFilter[FilterConfig]):
    """Answers `GET /v1/responses/{id}` from the store, and `GET /ready` from the store and the inference server."""

    async def __call__(self, request: HttpRequest, below: HttpBelow) -> HttpResponse:
        path = urlsplit(request.path).path
        if request.method == "GET" and path == "/ready":
            return await self._ready(request, below)
        found = RESPONSE_PATH.fullmatch(path)
        if request.method == "GET" and found:
            return await self._get_response(unquote(found.group(1)), parse_qs(urlsplit(request.path).query))
        raise ClientError(
            f"Invalid URL ({request.method} {path})", http_status=HTTPStatus.NOT_FOUND, code="unknown_url"
        )

    async def _get_response(self, response_id: str, query: dict[str, list[str]]) -> HttpResponse:
        if query.get("stream", ["false"])[-1] == "true":
            raise ClientError("Streaming a stored response is not supported yet: omit 'stream'.", param="stream")
        if not RESPONSE_ID.fullmatch(response_id):
            raise ClientError(
                f"Invalid 'response_id': '{response_id[:64]}'. Expected an ID that begins with 'resp'.",
                param="response_id",
                code="invalid_value",
            )
        response = await self.services.store.load_response(DEFAULT_TENANT, response_id)
        if response is None:
            raise ClientError(f"Response with id '{response_id}' not found.", http_status=HTTPStatus.NOT_FOUND)
        return HttpResponse.of_json(200, response)

    async def _ready(self, request: HttpRequest, below: HttpBelow) -> HttpResponse:
        """200 when a turn would succeed: the store answers, and so does the inference server."""
        await self.services.store.check()
        headers = {name: request.headers[name] for name in ("authorization", "host") if name in request.headers}
        models = await below(HttpRequest("GET", MODELS_PATH, headers))
        async for _ in models.body:
            pass
        if models.status >= 500:
            raise UpstreamError(
                f"The inference server answers {models.status} to GET {MODELS_PATH}.",
                http_status=HTTPStatus.SERVICE_UNAVAILABLE,
                code="upstream_unavailable",
            )
        return HttpResponse.of_json(200, {"status": "ready"})
