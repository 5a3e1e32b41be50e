"""The tables of conversations, as the code sees them; `migrations` brings a database to this shape.

A conversation counts its changes: its `revision` is one more for every item that was added and every removal, and the
number of an addition is the item's `position`. An item was there at revision `r` when `position < r` and it had not
been removed (`removed` is null, or `>= r`). So what a turn has read is one number, and removing an item takes it out of
the conversation and not out of what stored responses build on; it is deleted once none of them does.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, LargeBinary, String, Table

from attache_core.storage.tables import metadata

conversations = Table(
    "conversations",
    metadata,
    Column("tenant", String, primary_key=True),
    Column("id", String, primary_key=True),
    Column("created_at", BigInteger, nullable=False),
    Column("revision", BigInteger, nullable=False),
    Column("lease_owner", String),
    Column("lease_expires_ms", BigInteger),
    Column("lease_revision", BigInteger),
    Column("metadata", LargeBinary, nullable=False),
)
"""The three columns of the lease say which turn is running, until when it is believed to be, and what it has read."""

conversation_items = Table(
    "conversation_items",
    metadata,
    Column("tenant", String, primary_key=True),
    Column("conversation_id", String, primary_key=True),
    Column("position", BigInteger, primary_key=True),
    Column("id", String, nullable=False),
    Column("removed", BigInteger),
    Column("item", LargeBinary, nullable=False),
    Index("conversation_items_by_id", "tenant", "id", "conversation_id", "position"),
)

conversation_turns = Table(
    "conversation_turns",
    metadata,
    Column("tenant", String, primary_key=True),
    Column("response_id", String, primary_key=True),
    Column("conversation_id", String, nullable=False),
    Column("revision", BigInteger, nullable=False),
    Index("conversation_turns_by_conversation", "tenant", "conversation_id", "revision"),
)
"""What each stored response of a conversation had read of it."""
