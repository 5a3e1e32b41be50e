"""A store in a dict, for tests that need turns to be remembered and no database. It passes `StoreContract`.

It keeps encoded rows, like a database, so that what a test changes after saving or loading does not change the store.
"""

from __future__ import annotations

import time
from collections.abc import Collection

from attache_core.errors import StoreError
from attache_core.json_codec import Json
from attache_core.storage.conversations import Lease
from attache_core.storage.limits import DEFAULT_LIMITS, StoreLimits
from attache_core.storage.row import TurnRow, items_by_id, to_row, to_turn, to_turns, turn_items
from attache_core.storage.store import CONTINUABLE, Store, StoredTurn
from attache_core.testing.memory_approvals import MemoryApprovals
from attache_core.testing.memory_conversations import MemoryConversations


class MemoryStore(Store):
    """Turns in memory, as long as the object lives, without a bound on their number.

    Attributes:
        available: set to False, and every call raises StoreError, like a database that is down.
    """

    def __init__(self, limits: StoreLimits = DEFAULT_LIMITS) -> None:
        self.available = True
        self._limits = limits
        self._conversations = MemoryConversations(limits, self.check)
        self._rows: dict[tuple[str, str], TurnRow] = {}
        self._turn_of_item: dict[tuple[str, str], TurnRow] = {}
        self._approvals = MemoryApprovals(limits, self.check, self._is_continuable)

    @property
    def approvals(self) -> MemoryApprovals:
        """See `Store.approvals`."""
        return self._approvals

    @property
    def conversations(self) -> MemoryConversations:
        """See `Store.conversations`."""
        return self._conversations

    async def save_turn(self, tenant: str, turn: StoredTurn, lease: Lease | None = None) -> None:
        """See `Store.save_turn`."""
        row = to_row(tenant, turn)
        await self.check()
        if (tenant, row.id) in self._rows:
            return
        if lease is not None:
            await self._conversations.append(tenant, lease, turn_items(turn))
            self._conversations.remember(tenant, lease, row.id)
        self._rows[tenant, row.id] = row
        self._turn_of_item.update({(tenant, item_id): row for item_id in items_by_id(turn)})

    async def load_chain(self, tenant: str, response_id: str) -> list[StoredTurn]:
        """See `Store.load_chain`."""
        await self.check()
        chain: list[TurnRow] = []
        size_bytes = 0
        row = self._row(tenant, response_id)
        while row is not None:
            chain.append(row)
            size_bytes += row.size_bytes
            self._limits.check_chain(len(chain), size_bytes)
            row = self._row(tenant, row.previous_id) if row.previous_id else None
        return to_turns([(row.input, row.response, row.output_at, row.output_bytes) for row in reversed(chain)])

    async def load_items(self, tenant: str, item_ids: Collection[str]) -> dict[str, Json]:
        """See `Store.load_items`."""
        self._limits.check_items(len(item_ids))
        await self.check()
        found = {key: self._turn_of_item[tenant, key] for key in item_ids if (tenant, key) in self._turn_of_item}
        rows = {key: row for key, row in found.items() if self._is_kept(row)}
        size_bytes = sum(row.size_bytes for row in {row.id: row for row in rows.values()}.values())
        self._limits.check_items(len(rows), size_bytes)
        return {key: items_by_id(to_turn(row.input, row.response))[key] for key, row in rows.items()}

    async def load_response(self, tenant: str, response_id: str) -> Json | None:
        """See `Store.load_response`."""
        await self.check()
        row = self._row(tenant, response_id)
        return to_turn(row.input, row.response).response if row else None

    async def load_turn(self, tenant: str, response_id: str) -> StoredTurn | None:
        """See `Store.load_turn`."""
        await self.check()
        row = self._row(tenant, response_id)
        return to_turn(row.input, row.response) if row else None

    async def delete_turn(self, tenant: str, response_id: str) -> bool:
        """See `Store.delete_turn`."""
        await self.check()
        row = self._row(tenant, response_id)
        if row is not None:
            self._forget(row)
        return row is not None

    async def remove_expired(self) -> int:
        """See `Store.remove_expired`; all at once."""
        await self.check()
        expired = [row for row in self._rows.values() if not self._is_kept(row)]
        for row in expired:
            self._forget(row)
        return len(expired)

    async def check(self) -> None:
        """Raises StoreError unless `available`."""
        if not self.available:
            raise StoreError("The store is out of reach; the same request may succeed later.")

    def _row(self, tenant: str, response_id: str) -> TurnRow | None:
        row = self._rows.get((tenant, response_id))
        return row if row is not None and self._is_kept(row) else None

    def _is_kept(self, row: TurnRow) -> bool:
        kept_s = self._limits.retention_s
        return kept_s is None or row.created_at is None or row.created_at >= int(time.time()) - kept_s

    def _forget(self, row: TurnRow) -> None:
        del self._rows[row.tenant, row.id]
        self._approvals.forget(row.tenant, row.id)
        self._turn_of_item = {key: turn for key, turn in self._turn_of_item.items() if turn is not row}

    def _is_continuable(self, tenant: str, response_id: str) -> bool:
        row = self._row(tenant, response_id)
        return row is not None and row.status in CONTINUABLE
