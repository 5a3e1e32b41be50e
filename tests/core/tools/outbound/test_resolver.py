from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator

import pytest

from attache_core.tools.outbound.resolver import MAX_LOOKUPS, addresses_of


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Semaphore]:
    """Names below `slow.test` have servers that do not answer; counts how often they are asked."""
    ended, asked, real = threading.Event(), threading.Semaphore(0), socket.getaddrinfo

    def getaddrinfo(host: str, port: int, *, type: int, flags: int) -> object:  # noqa: A002 - as in the module socket
        if not host.endswith("slow.test") or flags:
            return real(host, port, type=type, flags=flags)
        asked.release()
        ended.wait()
        raise socket.gaierror

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    yield asked
    ended.set()


async def test_names_that_nobody_answers_delay_no_address_and_no_other_work_in_threads(
    silent: threading.Semaphore,
) -> None:
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        waiting = [tasks.create_task(addresses_of(f"{number}.slow.test", 80)) for number in range(MAX_LOOKUPS + 8)]
        for _ in range(MAX_LOOKUPS):
            assert await asyncio.to_thread(silent.acquire)
        assert await addresses_of("127.0.0.1", 80) == ("127.0.0.1",)
        assert await addresses_of("0x7f.1", 80) == ("127.0.0.1",)
        for lookup in waiting:
            lookup.cancel()
    assert not silent.acquire(blocking=False)
