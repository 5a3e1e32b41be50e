"""Answers of the resolver, as a test wants them."""

from __future__ import annotations

import pytest

from attache_core.tools.outbound import resolver


def answer_with(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """Let the resolver give these answers to names, one after the other; returns the names asked for."""
    real, left, asked = resolver.addresses_of, list(answers), list[str]()

    async def addresses_of(host: str, port: int) -> tuple[str, ...]:
        if host[:1].isdigit():
            return await real(host, port)
        asked.append(host)
        return tuple(left.pop(0))

    monkeypatch.setattr("attache_core.tools.outbound.policy.addresses_of", addresses_of)
    return asked
