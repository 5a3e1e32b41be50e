"""Every store passes the same suite."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from attache_core.storage import Store
from attache_core.storage.engine import open_store
from attache_core.testing.memory_store import MemoryStore
from attache_core.testing.store_contract import ApprovalContract, StoreContract


class TestSqliteStore(StoreContract, ApprovalContract):
    """On disk."""

    @pytest.fixture
    async def store(self, url: str) -> AsyncIterator[Store]:
        async with open_store(url) as store:
            yield store


class TestPostgresqlStore(StoreContract, ApprovalContract):
    """On a server."""

    @pytest.fixture
    async def store(self, server_url: str) -> AsyncIterator[Store]:
        async with open_store(server_url) as store:
            yield store


class TestMemoryStore(StoreContract, ApprovalContract):
    """The fake."""

    @pytest.fixture
    async def store(self) -> Store:
        return MemoryStore()
