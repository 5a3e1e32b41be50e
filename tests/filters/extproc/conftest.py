from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from attache_filters.extproc.transport.choice import Transport
from filters.extproc.real_envoy import RealEnvoy, running_envoy

CHAINS = {
    "one": ["a"],
    "two": ["a", "b"],
    "four": ["a", "b", "c", "d"],
    "five": ["a", "b", "c", "d", "e"],
    "unknown": ["nobody"],
    "loop": [],
}


@pytest.fixture(params=["lean", "grpcio"])
def transport(request: pytest.FixtureRequest) -> Transport:
    """Everything that is served is served by each."""
    chosen: Transport = request.param
    return chosen


@pytest.fixture(scope="session")
def shared_envoy() -> Iterator[RealEnvoy]:
    with running_envoy(CHAINS) as running:
        yield running


@pytest.fixture
def real_envoy(shared_envoy: RealEnvoy, transport: Transport) -> RealEnvoy:
    """One Envoy for all tests; each test brings its own processor, with this transport, and its own upstream."""
    return replace(shared_envoy, transport=transport)
