"""Conversations in a dict, as part of the store in memory. They pass `ConversationContract`.

As in `storage.conversation_tables`, a conversation counts its changes, and what was removed stays for those who have
read it; here it stays for good.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from attache_core.json_codec import Json, decode_exactly, encode
from attache_core.storage.conversations import (
    Conversation,
    Conversations,
    Lease,
    conversation_changed,
    conversation_not_found,
    duplicate_item,
    item_already_in_conversation,
)
from attache_core.storage.limits import StoreLimits
from attache_core.storage.row import is_key
from attache_core.types.paging import ItemPage, Page, page_of


@dataclass(slots=True)
class _Entry:
    position: int
    id: str | None
    item: bytes
    removed: int | None = None


@dataclass(slots=True)
class _Held:
    owner: str
    expires: float
    revision: int


@dataclass(slots=True)
class _Kept:
    created_at: int
    metadata: bytes
    revision: int = 0
    entries: list[_Entry] = field(default_factory=list)
    held: _Held | None = None

    def add(self, items: Sequence[Json]) -> None:
        for item in items:
            self.entries.append(_Entry(self.revision, item.get("id"), encode(item)))
            self.revision += 1

    def present(self) -> list[_Entry]:
        return [entry for entry in self.entries if entry.removed is None]

    def duplicate(self, items: Sequence[Json]) -> str | None:
        there = {entry.id for entry in self.present() if entry.id and is_key(entry.id)}
        return next((item["id"] for item in items if item.get("id") in there), None)

    def at(self, revision: int) -> list[bytes]:
        return [
            entry.item
            for entry in self.entries
            if entry.position < revision and (entry.removed is None or entry.removed >= revision)
        ]


class MemoryConversations(Conversations):
    """Conversations in memory, as long as the object lives. `check` raises StoreError when the store is to be down."""

    def __init__(self, limits: StoreLimits, check: Callable[[], Awaitable[None]]) -> None:
        self._limits = limits
        self._check = check
        self._kept: dict[tuple[str, str], _Kept] = {}
        self._read: dict[tuple[str, str], tuple[_Kept, int]] = {}

    async def create(self, tenant: str, conversation: Conversation, items: Sequence[Json]) -> None:
        """See `Conversations.create`."""
        await self._check()
        if not (is_key(tenant) and is_key(conversation.id)):
            raise ValueError("a conversation needs a tenant and an id of plain text")
        kept = _Kept(conversation.created_at, encode(conversation.metadata))
        kept.add(items)
        self._kept[tenant, conversation.id] = kept

    async def load(self, tenant: str, conversation_id: str) -> Conversation | None:
        """See `Conversations.load`."""
        kept = await self._find(tenant, conversation_id)
        return None if kept is None else Conversation(conversation_id, kept.created_at, decode_exactly(kept.metadata))

    async def update(self, tenant: str, conversation_id: str, metadata: Json) -> Conversation | None:
        """See `Conversations.update`."""
        kept = await self._find(tenant, conversation_id)
        if kept is not None:
            kept.metadata = encode(metadata)
        return await self.load(tenant, conversation_id)

    async def delete(self, tenant: str, conversation_id: str) -> bool:
        """See `Conversations.delete`."""
        await self._check()
        return self._kept.pop((tenant, conversation_id), None) is not None

    async def add_items(self, tenant: str, conversation_id: str, items: Sequence[Json]) -> bool:
        """See `Conversations.add_items`."""
        kept = await self._find(tenant, conversation_id)
        if kept is None:
            return False
        if kept.duplicate(items) is not None:
            raise item_already_in_conversation()
        kept.add(items)
        return True

    async def list_items(self, tenant: str, conversation_id: str, page: Page) -> ItemPage | None:
        """See `Conversations.list_items`."""
        kept = await self._find(tenant, conversation_id)
        if kept is None:
            return None
        whole = page_of([decode_exactly(entry.item) for entry in kept.present()], page)
        sizes = accumulate(len(encode(item)) for item in whole.items)
        count = max(1, sum(size <= self._limits.max_page_bytes for size in sizes))
        return ItemPage(whole.items[:count], whole.has_more or len(whole.items) > count)

    async def load_item(self, tenant: str, conversation_id: str, item_id: str) -> Json | None:
        """See `Conversations.load_item`."""
        kept = await self._find(tenant, conversation_id)
        found = [] if kept is None else [entry for entry in kept.present() if entry.id == item_id and is_key(item_id)]
        return decode_exactly(found[-1].item) if found else None

    async def remove_item(self, tenant: str, conversation_id: str, item_id: str) -> bool:
        """See `Conversations.remove_item`."""
        kept = await self._find(tenant, conversation_id)
        if kept is None:
            return False
        removed = [entry for entry in kept.present() if entry.id == item_id and is_key(item_id)]
        for entry in removed:
            entry.removed = kept.revision
        kept.revision += 1
        if removed and kept.held is not None and kept.held.revision > removed[0].position:
            kept.held = None
        return bool(removed)

    async def load_items(self, tenant: str, item_ids: Collection[str]) -> dict[str, Json]:
        """See `Conversations.load_items`."""
        self._limits.check_items(len(item_ids))
        await self._check()
        entries = [entry for (owner, _), kept in self._kept.items() if owner == tenant for entry in kept.present()]
        found = {entry.id: entry.item for entry in entries if entry.id in item_ids and entry.id and is_key(entry.id)}
        self._limits.check_items(0, sum(map(len, found.values())))
        return {item_id: decode_exactly(item) for item_id, item in found.items()}

    async def load_history(self, tenant: str, conversation_id: str, revision: int | None = None) -> list[Json] | None:
        """See `Conversations.load_history`."""
        kept = await self._find(tenant, conversation_id)
        return None if kept is None else self._decoded(kept.at(kept.revision if revision is None else revision))

    async def load_history_of(self, tenant: str, response_id: str) -> list[Json]:
        """See `Conversations.load_history_of`."""
        await self._check()
        read = self._read.get((tenant, response_id))
        return [] if read is None else self._decoded(read[0].at(read[1]))

    async def lease(self, tenant: str, conversation_id: str, owner: str, ttl_s: float) -> Lease | None:
        """See `Conversations.lease`."""
        kept = await self._find(tenant, conversation_id)
        if kept is None:
            raise conversation_not_found(conversation_id, "conversation")
        if kept.held is not None and kept.held.expires > time.monotonic():
            return None
        kept.held = _Held(owner, time.monotonic() + ttl_s, kept.revision)
        return Lease(conversation_id, owner, kept.revision)

    async def renew(self, tenant: str, lease: Lease, ttl_s: float) -> bool:
        """See `Conversations.renew`."""
        held = await self._held(tenant, lease)
        if held is not None:
            held.expires = time.monotonic() + ttl_s
        return held is not None

    async def release(self, tenant: str, lease: Lease) -> None:
        """See `Conversations.release`."""
        if await self._held(tenant, lease) is not None:
            self._kept[tenant, lease.conversation_id].held = None

    async def append(self, tenant: str, lease: Lease, items: Sequence[Json]) -> None:
        """See `Conversations.append`."""
        if await self._held(tenant, lease) is None:
            raise conversation_changed(lease.conversation_id)
        kept = self._kept[tenant, lease.conversation_id]
        duplicate = kept.duplicate(items)
        if duplicate is not None:
            raise duplicate_item(duplicate)
        kept.add(items)
        kept.held = None

    def remember(self, tenant: str, lease: Lease, response_id: str) -> None:
        """The stored response of that id has read what its lease says."""
        self._read[tenant, response_id] = (self._kept[tenant, lease.conversation_id], lease.revision)

    async def _find(self, tenant: str, conversation_id: str) -> _Kept | None:
        await self._check()
        return self._kept.get((tenant, conversation_id))

    async def _held(self, tenant: str, lease: Lease) -> _Held | None:
        kept = await self._find(tenant, lease.conversation_id)
        held = None if kept is None else kept.held
        return held if held is not None and held.owner == lease.owner else None

    def _decoded(self, items: Sequence[bytes]) -> list[Json]:
        self._limits.check_conversation(len(items), sum(map(len, items)))
        return [decode_exactly(item) for item in items]
