"""Whether a turn would succeed now: every worker serves, and `/ready`, asked as a client would, says yes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import httpx
import structlog

from attache_core import json_codec
from attache_envoy.run.admin import AdminClient

READY_PATH = "/ready"
FIRST_PAUSE_S = 0.02
MAX_PAUSE_S = 0.25
REQUEST_TIMEOUT_S = 5.0
PATIENCE_S = 1.0
"""What is not ready within this time is worth a line in the log."""

log = structlog.get_logger(__name__)


async def wait_for_workers(admin: AdminClient) -> None:
    """Return when Envoy finds every worker healthy; before that, requests would only fail, noisily."""

    async def reason() -> str | None:
        healthy, total = await admin.healthy_workers()
        return None if healthy == total else f"{healthy} of {total} workers serve"

    await _wait_while(reason)


async def wait_until_ready(url: str) -> None:
    """Return when `/ready` answers 200, or when this gateway has no such route (404)."""
    async with httpx.AsyncClient(base_url=url, timeout=REQUEST_TIMEOUT_S, trust_env=False) as client:

        async def reason() -> str | None:
            answer = await client.get(READY_PATH)
            if answer.status_code in (200, 404):
                return None
            return _message(answer.content) or f"{READY_PATH} answers HTTP status {answer.status_code}"

        await _wait_while(reason)


async def _wait_while(reason_of: Callable[[], Awaitable[str | None]]) -> None:
    """Return when there is no reason to wait any more. Each new one is logged once, from `PATIENCE_S` on."""
    loop = asyncio.get_running_loop()
    started, pause_s, logged = loop.time(), FIRST_PAUSE_S, None
    while (reason := await _reason(reason_of)) is not None:
        if reason != logged and loop.time() - started >= PATIENCE_S:
            log.warning("not ready", reason=reason)
            logged = reason
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * 2, MAX_PAUSE_S)


async def _reason(reason_of: Callable[[], Awaitable[str | None]]) -> str | None:
    try:
        return await reason_of()
    except httpx.HTTPError as error:
        return f"Envoy does not answer: {error!r}"


def _message(body: bytes) -> str | None:
    try:
        message = json_codec.decode(body)["error"]["message"]
    except (ValueError, KeyError, TypeError):
        return None
    return message if isinstance(message, str) else None
