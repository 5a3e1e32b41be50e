from __future__ import annotations

from collections.abc import Iterator

import pytest

from filters.extproc.real_envoy import RealEnvoy, running_envoy

CHAINS = {
    "one": ["a"],
    "two": ["a", "b"],
    "four": ["a", "b", "c", "d"],
    "five": ["a", "b", "c", "d", "e"],
    "unknown": ["nobody"],
    "loop": [],
}


@pytest.fixture(scope="session")
def real_envoy() -> Iterator[RealEnvoy]:
    """One Envoy for all tests; each test brings its own processor and upstream."""
    with running_envoy(CHAINS) as running:
        yield running
