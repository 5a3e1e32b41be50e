"""Waiting until a turn would succeed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from structlog.testing import capture_logs

from attache_envoy.run import readiness
from attache_envoy.run.readiness import wait_until_ready

NOT_YET = (503, '{"error": {"message": "The store is out of reach."}}')
READY = (200, "{}")
NO_ROUTE = (404, "{}")


@asynccontextmanager
async def server_that_answers(answers: list[tuple[int, str]]) -> AsyncIterator[str]:
    """One answer for each connection, in order."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        status, body = answers.pop(0)
        head = f"HTTP/1.1 {status} X\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        writer.write((head + body).encode())
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize("last", [READY, NO_ROUTE])
async def test_it_waits_and_logs_the_reason_once(last: tuple[int, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "PATIENCE_S", 0)
    answers = [NOT_YET, NOT_YET, (500, "oops"), last]
    with capture_logs() as logs:
        async with asyncio.timeout(5), server_that_answers(answers) as url:
            await wait_until_ready(url)
    assert answers == []
    assert [line["reason"] for line in logs] == ["The store is out of reach.", "/ready answers HTTP status 500"]
