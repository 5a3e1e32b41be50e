"""What the turn needs of a store. One call is one transaction; no call is open across a model, tool or client await."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from attache_core.json_codec import Json, decode_exactly
from attache_core.storage.approvals import ApprovalStore
from attache_core.storage.conversations import Conversations, Lease

CONTINUABLE = frozenset({"completed", "incomplete"})
"""The statuses of a response that may be continued: one that failed, or was cancelled, has no trustworthy end."""


class StoredTurn:
    """One turn, as it is written once and read back. Treat as read-only.

    Args:
        response: see `response`; or its stored text, which is decoded when it is asked for. Of most turns of a chain
            nobody asks, and what a response repeats of its request is more than what it adds.
        input: see `input`.
        output: see `output`; to be given beside a text.

    Attributes:
        input: the items that the client sent in this turn, with ids, in order; never the history before them.
        output: the `output` of the response; None where it has none.
    """

    __slots__ = ("_response", "input", "output")
    __hash__ = None  # type: ignore[assignment]  # as Python has it for what can be compared and holds JSON

    def __init__(self, response: Json | bytes, input: Sequence[Json], output: list[Json] | None = None) -> None:  # noqa: A002 - the API's word
        self._response: Json | bytes = response
        self.input = input
        self.output: list[Json] | None = output if isinstance(response, bytes) else response.get("output")

    @property
    def response(self) -> Json:
        """The public response object, exactly as it was sent to the client; its `id` is the turn's."""
        response: Json = decode_exactly(self._response) if isinstance(self._response, bytes) else self._response
        self._response = response
        return response

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StoredTurn):
            return NotImplemented
        return (self.response, self.input) == (other.response, other.input)

    def __repr__(self) -> str:
        return f"StoredTurn(response={self.response!r}, input={self.input!r})"


class Store(Protocol):
    """Turns by response id, each belonging to a tenant. Another tenant's id is as unknown as no id at all, and so
    is that of a turn whose time is over (`StoreLimits.retention_days`)."""

    @property
    def approvals(self) -> ApprovalStore:
        """The calls of these turns that wait for a user's approval."""
        ...

    @property
    def conversations(self) -> Conversations:
        """The conversations that turns may belong to."""
        ...

    async def save_turn(self, tenant: str, turn: StoredTurn, lease: Lease | None = None) -> None:
        """Write one turn, durably, in one transaction. Writing the same response id again is no error and no change.

        With a lease, its items are added to the conversation as well, which ends the lease; each of them has an id.

        Raises:
            StoreError: the store is out of reach. Nothing was written, unless the connection broke while it was being
                committed: then nobody knows, and writing it again is right.
            ClientError: its items cannot be added, see `Conversations.append`; nothing was written.
            ValueError: the response has no `id` that can be a key (a bug of the caller).
        """
        ...

    async def load_chain(self, tenant: str, response_id: str) -> list[StoredTurn]:
        """The turn of that id and all that it continues, oldest first, in one query; empty when the id is unknown.

        Raises:
            StoreError: the store is out of reach.
            ClientError: 400, the chain is longer or larger than the store's limits.
        """
        ...

    async def load_items(self, tenant: str, item_ids: Collection[str]) -> dict[str, Json]:
        """The items of these ids, by id, as they were stored, in one query; an id that is unknown is left out.

        An item is found by its `id`, whether the client sent it or got it. An id that occurs in several turns stands
        for the item of the turn that was written last, and within a turn for the last one. Items of turns that failed
        or were cancelled are not found.

        Raises:
            StoreError: the store is out of reach.
            ClientError: 400, more ids, or more bytes of turns that hold them, than the store's limits allow.
        """
        ...

    async def load_response(self, tenant: str, response_id: str) -> Json | None:
        """The response object as it was sent, or None."""
        ...

    async def load_turn(self, tenant: str, response_id: str) -> StoredTurn | None:
        """The turn of that id alone, or None."""
        ...

    async def delete_turn(self, tenant: str, response_id: str) -> bool:
        """Remove the turn, and all that leads to it, in one transaction; False when the id is unknown.

        Turns that continue from it stay, and a chain that ends in one of them begins after the gap. An id of an item
        that led to this turn leads nowhere any more.

        Raises:
            StoreError: the store is out of reach; nothing was removed.
        """
        ...

    async def remove_expired(self) -> int:
        """Remove a bounded number of turns whose time is over, as `delete_turn` does, in one transaction; how many.

        They are unknown before that. 0 says that there are none, or that somebody else is removing them.

        Raises:
            StoreError: the store is out of reach; nothing was removed.
        """
        ...

    async def check(self) -> None:
        """Raises StoreError unless a query can be answered now."""
        ...
