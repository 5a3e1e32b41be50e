"""Whether a turn would succeed: the store answers, and so does the inference server, in time."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

from attache_core.errors import UpstreamError
from attache_core.events.error_codes import UNAVAILABLE
from attache_core.storage.store import Store
from attache_filters.sdk.http import HttpBelow, HttpRequest, HttpResponse

MODELS_PATH = "/v1/models"


async def answer_ready(store: Store, request: HttpRequest, below: HttpBelow, timeout_s: float) -> HttpResponse:
    """200 when both answer within `timeout_s`. Raises StoreError or UpstreamError (503)."""
    try:
        async with asyncio.timeout(timeout_s):
            await store.check()
            status = await _models_status(request, below)
    except TimeoutError as error:
        raise _not_ready(f"Not everything answered within {timeout_s:g} s.") from error
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
