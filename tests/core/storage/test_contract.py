"""Every store passes the same suite."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from attache_core.storage import Store
from attache_core.storage.engine import open_store
from attache_core.storage.migrate import migrate
from attache_core.testing.memory_store import MemoryStore
from attache_core.testing.store_contract import ApprovalContract, StoreContract


class TestSqlStore(StoreContract, ApprovalContract):
    """On SQLite, on disk."""

    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[Store]:
        url = f"sqlite:///{tmp_path}/attache.db"
        migrate(url)
        async with open_store(url) as store:
            yield store


class TestMemoryStore(StoreContract, ApprovalContract):
    """The fake."""

    @pytest.fixture
    async def store(self) -> Store:
        return MemoryStore()
