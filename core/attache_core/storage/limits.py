"""The bounds of a store, each with its default, and the error of a client that goes over one.

Unaware of databases. Every store applies the chain's bounds alike, so that a fake refuses what the real one refuses.
"""

from __future__ import annotations

import math
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from attache_core.errors import ClientError

SECONDS_PER_DAY: Final = 86_400


class StoreLimits(BaseModel):
    """How long responses are kept, how much one call may load, how many connections there may be, and how long anything
    may wait."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    retention_days: float | None = Field(default=None, gt=0, le=36_500)
    """Days for which a response is kept. After them it is as unknown as one that was deleted, and is removed. None: for
    good. Items of conversations stay."""

    retention_interval_s: float = Field(default=60.0, gt=0, le=86_400)
    """Seconds, about, between two looks of a worker process for responses that are to be removed."""

    max_chain_turns: int = Field(default=10_000, ge=1)
    """Turns that one response may continue, itself included."""

    max_chain_bytes: int = Field(default=64 * 1024 * 1024, ge=1)
    """Bytes of stored JSON (input and response) of all these turns together."""

    max_items: int = Field(default=1_000, ge=1, le=10_000)
    """Stored items that one request may refer to, or approvals that it may answer."""

    max_items_bytes: int = Field(default=64 * 1024 * 1024, ge=1)
    """Bytes of stored JSON of the turns that hold these items, taken together."""

    max_conversation_items: int = Field(default=10_000, ge=1)
    """Items of a conversation that one turn may read."""

    max_conversation_bytes: int = Field(default=64 * 1024 * 1024, ge=1)
    """Bytes of stored JSON of these items, taken together."""

    max_page_bytes: int = Field(default=16 * 1024 * 1024, ge=1)
    """Bytes of stored JSON of the items of one page of a conversation's list, the first one excepted."""

    max_readers: int = Field(default=4, ge=1, le=100)
    """SQLite: connections that read at the same time, per worker process. One more connection writes."""

    max_group_writes: int = Field(default=64, ge=1, le=1000)
    """SQLite: changes that one transaction makes together, of those that wait at the same moment."""

    max_waiting_calls: int = Field(default=1000, ge=1)
    """Calls per worker process that wait for a connection, on SQLite for one that reads and for the one that writes
    each; a further one is refused at once."""

    max_connections: int = Field(default=10, ge=1, le=1000)
    """PostgreSQL: connections per worker process."""

    connection_timeout_s: float = Field(default=5.0, ge=0)
    """Seconds that a call waits for one of these connections while all are in use."""

    connect_timeout_s: float = Field(default=5.0, gt=0)
    """PostgreSQL: seconds for opening a connection."""

    lock_timeout_s: float = Field(default=5.0, ge=0)
    """Seconds that a call waits for a lock that another connection or process holds."""

    statement_timeout_s: float = Field(default=10.0, gt=0)
    """PostgreSQL: seconds for one statement. The server ends it then; a server that does not is left a second later."""

    migration_timeout_s: float = Field(default=60.0, ge=0)
    """Seconds that a start waits for another process that is changing the schema, and that each statement of its own
    change may take on PostgreSQL."""

    @property
    def retention_s(self) -> int | None:
        """`retention_days` in whole seconds, rounded up."""
        return None if self.retention_days is None else math.ceil(self.retention_days * SECONDS_PER_DAY)

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
