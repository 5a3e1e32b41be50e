"""A conversation is held by one turn at a time, from before the turn reads it until its items are in it.

Knows how to wait for a conversation and how to keep it; the store knows who has it, so this holds across workers and
gateways. What holds is a lease and not a lock: a turn renews it while it runs, and that of a worker that died ends by
itself. A turn that lost its lease goes on, and its end is refused by the store.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import structlog

from attache_core.errors import ClientError, StoreError
from attache_core.json_codec import Json
from attache_core.storage.conversations import Lease
from attache_core.storage.store import Store, StoredTurn
from attache_core.tools.task_scope import task_scope
from attache_core.types.conversation import conversation_id
from attache_core.types.ids import new_id
from attache_core.types.turn import TurnRequest

DEFAULT_WAIT_S = 30.0
DEFAULT_LEASE_S = 15.0

RENEWALS_PER_LEASE = 3
"""A lease survives that many minus one renewals that fail."""

FIRST_PAUSE_S = 0.02
LONGEST_PAUSE_S = 0.5
"""Between two attempts to get a conversation that another turn holds; the pauses grow from the one to the other."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class HoldTerms:
    """How long a turn waits for its conversation (0: it is refused at once), and how long a lease lasts unrenewed."""

    wait_s: float = DEFAULT_WAIT_S
    lease_s: float = DEFAULT_LEASE_S


class ConversationHold:
    """The conversation of one turn, which it holds; or none, which costs nothing."""

    def __init__(self, tenant: str, store: Store, lease: Lease | None) -> None:
        self._tenant = tenant
        self._store = store
        self.lease = lease

    async def save(self, turn: StoredTurn) -> None:
        """Write the turn, and its items into the conversation, in one transaction; see `Store.save_turn`."""
        await self._store.save_turn(self._tenant, turn, self.lease)
        self.lease = None

    async def append(self, items: list[Json]) -> None:
        """Write the items of a turn that is not stored; see `Conversations.append`. Without a conversation, nothing."""
        if self.lease is not None:
            await self._store.conversations.append(self._tenant, self.lease, items)
            self.lease = None

    async def release(self) -> None:
        """Let others have the conversation, unless the turn has ended it. A store that fails ends the lease later."""
        if self.lease is not None:
            try:
                await self._store.conversations.release(self._tenant, self.lease)
            except StoreError as error:
                _log.warning("conversation not released", reason=error.message)

    async def keep(self, lease_s: float) -> None:
        """Renew the lease until cancelled, or until it is lost."""
        while True:
            await asyncio.sleep(lease_s / RENEWALS_PER_LEASE)
            lease = self.lease
            try:
                if lease is None or not await self._store.conversations.renew(self._tenant, lease, lease_s):
                    return
            except StoreError as error:
                _log.warning("conversation not renewed", reason=error.message)


@asynccontextmanager
async def hold_conversation(turn: TurnRequest, store: Store, terms: HoldTerms) -> AsyncIterator[ConversationHold]:
    """Hold the conversation that a turn names, if it names one, until the block ends.

    Raises:
        ClientError: 404, the conversation is unknown; 400 `conversation_locked`, another turn held it for too long.
        StoreError: the store is out of reach.
    """
    tenant, named = turn.facts.tenant, conversation_id(turn.body)
    if named is None:
        yield ConversationHold(tenant, store, None)
        return
    owner = turn.facts.response_id or new_id("resp")
    hold = ConversationHold(tenant, store, await _lease(tenant, named, owner, store, terms))
    try:
        async with task_scope() as tasks:
            tasks.start(hold.keep(terms.lease_s))
            yield hold
    finally:
        await hold.release()


async def _lease(tenant: str, named: str, owner: str, store: Store, terms: HoldTerms) -> Lease:
    try:
        return await _wait_for(tenant, named, owner, store, terms)
    except asyncio.CancelledError:
        # The store may have given it all the same, and nobody would give it back.
        await ConversationHold(tenant, store, Lease(named, owner, revision=0)).release()
        raise


async def _wait_for(tenant: str, named: str, owner: str, store: Store, terms: HoldTerms) -> Lease:
    clock = asyncio.get_running_loop()
    deadline, pause_s = clock.time() + terms.wait_s, FIRST_PAUSE_S
    while True:
        try:
            lease = await store.conversations.lease(tenant, named, owner, terms.lease_s)
        except asyncio.CancelledError:
            # The store may have given it all the same, and whoever waits would wait for a turn that is gone.
            await ConversationHold(tenant, store, Lease(named, owner, 0)).release()
            raise
        if lease is not None:
            return lease
        left_s = deadline - clock.time()
        if left_s <= 0:
            raise _locked()
        await asyncio.sleep(min(left_s, pause_s * random.uniform(0.5, 1.5)))  # noqa: S311 - spreads attempts, no secret
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


def _locked() -> ClientError:
    return ClientError(
        "Another process is currently operating on this conversation. Please retry in a few seconds.",
        code="conversation_locked",
        param="conversation",
    )
