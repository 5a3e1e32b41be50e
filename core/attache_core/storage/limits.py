"""The bounds of a store, each with its default, and the error of a client that goes over one.

Unaware of databases. Every store applies the chain's bounds alike, so that a fake refuses what the real one refuses.
"""

from __future__ import annotations

from dataclasses import dataclass

from attache_core.errors import ClientError


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """How much one call may load, and how long it may wait.

    Attributes:
        max_chain_turns: turns that one `load_chain` may return.
        max_chain_bytes: bytes of stored JSON (input and response) that one `load_chain` may return.
        max_items: ids that one `load_items` may ask for.
        max_items_bytes: bytes of stored JSON of the turns that hold these items, taken together.
        max_conversation_items: items of a conversation that one turn may read.
        max_conversation_bytes: bytes of stored JSON of these items, taken together.
        max_page_bytes: bytes of stored JSON of the items of one page of a conversation's list, the first one excepted.
        max_readers: database connections that read at the same time, per process. One more connection writes.
        connection_timeout_s: how long a call waits for a free connection of this process.
        lock_timeout_s: how long a call waits for a lock that another connection or process holds.
    """

    max_chain_turns: int = 10_000
    max_chain_bytes: int = 64 * 1024 * 1024
    max_items: int = 1_000
    max_items_bytes: int = 64 * 1024 * 1024
    max_conversation_items: int = 10_000
    max_conversation_bytes: int = 64 * 1024 * 1024
    max_page_bytes: int = 16 * 1024 * 1024
    max_readers: int = 4
    connection_timeout_s: float = 5.0
    lock_timeout_s: float = 5.0

    def check_chain(self, turns: int, size_bytes: int) -> None:
        """Raises ClientError (400, `chain_too_long`) when a chain is longer or larger than one call may load."""
        if turns > self.max_chain_turns:
            raise _chain_too_long(f"more than {self.max_chain_turns} turns")
        if size_bytes > self.max_chain_bytes:
            raise _chain_too_long(f"more than {self.max_chain_bytes} bytes")

    def check_items(self, count: int, size_bytes: int = 0) -> None:
        """Raises ClientError (400, `too_many_items`) when one call may not load so many items, or turns so large."""
        if count > self.max_items:
            raise _too_many_items(f"more than {self.max_items} items")
        if size_bytes > self.max_items_bytes:
            raise _too_many_items(f"items of turns with more than {self.max_items_bytes} bytes")

    def check_conversation(self, count: int, size_bytes: int) -> None:
        """Raises ClientError (400, `conversation_too_long`) when a turn may not read so many items, or so large."""
        if count > self.max_conversation_items:
            raise _conversation_too_long(f"more than {self.max_conversation_items} items")
        if size_bytes > self.max_conversation_bytes:
            raise _conversation_too_long(f"more than {self.max_conversation_bytes} bytes")


DEFAULT_LIMITS = StoreLimits()


def _chain_too_long(excess: str) -> ClientError:
    return ClientError(
        f"The conversation that this response continues has {excess}; start a new one.",
        code="chain_too_long",
        param="previous_response_id",
    )


def _conversation_too_long(excess: str) -> ClientError:
    return ClientError(
        f"The conversation has {excess}; remove items from it, or create a new one.",
        code="conversation_too_long",
        param="conversation",
    )


def _too_many_items(excess: str) -> ClientError:
    return ClientError(
        f"The input refers to {excess}; send the items themselves, or continue from a response.",
        code="too_many_items",
        param="input",
    )
