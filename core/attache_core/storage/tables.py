"""The tables of the store, as the code sees them; `migrations` brings a database to this shape.

Invariants: one row per turn, written once, holding only what is new in that turn, so that a row never repeats its
history; an item's id leads to the latest turn that holds it, and the item itself is there. JSON is kept as the bytes of
`attache_core.json_codec`: databases' own text and JSON types refuse NUL and lone surrogates, and reorder keys.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, LargeBinary, MetaData, String, Table

metadata = MetaData()

responses = Table(
    "responses",
    metadata,
    Column("tenant", String, primary_key=True),
    Column("id", String, primary_key=True),
    Column("previous_id", String),  # before the large columns: walking a chain reads only the head of each row
    Column("created_at", BigInteger),
    Column("status", String),
    Column("input", LargeBinary, nullable=False),
    Column("response", LargeBinary, nullable=False),
    Column("output_at", BigInteger),
    Column("output_bytes", BigInteger),
    Index("responses_by_age", "created_at"),
)
"""The last two columns say where in `response` its output is, for those who want no more of it; null: nobody knows."""

items = Table(
    "items",
    metadata,
    Column("tenant", String, primary_key=True),
    Column("id", String, primary_key=True),
    Column("response_id", String, nullable=False),
    sqlite_with_rowid=False,  # the row is its key and one more: one tree instead of a table and its index
)

approvals = Table(
    "approvals",
    metadata,
    Column("tenant", String, primary_key=True),
    Column("id", String, primary_key=True),
    Column("response_id", String, nullable=False),
    Column("salt", LargeBinary, nullable=False),
    Column("fingerprint", String, nullable=False),
    Column("answer", String),
    Index("approvals_of_response", "tenant", "response_id"),
)
