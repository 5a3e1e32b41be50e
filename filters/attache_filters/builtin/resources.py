"""`resources`: what is answered from the store without asking a model, and whether the gateway is ready."""

from __future__ import annotations

import asyncio
import re
from http import HTTPStatus
from urllib.parse import unquote, urlsplit

from pydantic import Field

from attache_core.errors import ClientError, UpstreamError
from attache_core.events.error_codes import UNAVAILABLE
from attache_core.types.retrieve import check_retrieve_query
from attache_core.types.turn import DEFAULT_TENANT
from attache_filters.sdk.filter import FilterConfig, HttpFilter
from attache_filters.sdk.http import HttpBelow, HttpRequest, HttpResponse

RESPONSE_PATH = re.compile(r"/v1/responses/([^/]+)")
RESPONSE_ID = re.compile(r"resp_[A-Za-z0-9_-]{1,59}")
MODELS_PATH = "/v1/models"


class ResourcesConfig(FilterConfig):
    ready_timeout_s: float = Field(default=5.0, gt=0, le=60)
    """Seconds that the store and the inference server have to answer `GET /ready`."""


class Resources(HttpFilter[ResourcesConfig]):
    """Answers `GET /v1/responses/{id}` from the store, and `GET /ready` from the store and the inference server."""

    config_type = ResourcesConfig

    async def __call__(self, request: HttpRequest, below: HttpBelow) -> HttpResponse:
        path = urlsplit(request.path).path
        if request.method == "GET" and path == "/ready":
            return await self._ready(request, below)
        found = RESPONSE_PATH.fullmatch(path)
        if request.method == "GET" and found:
            return await self._get_response(unquote(found.group(1)), urlsplit(request.path).query)
        raise ClientError(
            f"Invalid URL ({request.method} {path})", http_status=HTTPStatus.NOT_FOUND, code="unknown_url"
        )

    async def _get_response(self, response_id: str, query: str) -> HttpResponse:
        check_retrieve_query(query)
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
        """200 when a turn would succeed: the store answers, and so does the inference server, in time."""
        try:
            async with asyncio.timeout(self.config.ready_timeout_s):
                await self.services.store.check()
                status = await _models_status(request, below)
        except TimeoutError as error:
            raise _not_ready(f"Not everything answered within {self.config.ready_timeout_s:g} s.") from error
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise _not_ready(f"The inference server answers {status} to GET {MODELS_PATH}.")
        return HttpResponse.of_json(200, {"status": "ready"})


async def _models_status(request: HttpRequest, below: HttpBelow) -> int:
    headers = {name: request.headers[name] for name in ("authorization", "host") if name in request.headers}
    models = await below(HttpRequest("GET", MODELS_PATH, headers))
    async for _ in models.body:
        pass
    return models.status


def _not_ready(message: str) -> UpstreamError:
    return UpstreamError(message, http_status=HTTPStatus.SERVICE_UNAVAILABLE, code=UNAVAILABLE)
