"""Answers of the resolver, as a test wants them."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest


def answer_with(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """Let the running loop's resolver give these answers to names, one after the other; returns the names asked for."""
    loop = asyncio.get_running_loop()
    real, left, asked = loop.getaddrinfo, list(answers), list[str]()

    async def getaddrinfo(host: Any, port: Any, **options: Any) -> Any:
        if host[:1].isdigit():
            return await real(host, port, **options)
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in left.pop(0)]

    monkeypatch.setattr(loop, "getaddrinfo", getaddrinfo)
    return asked
