"""The tables of conversations, of their items, and of what each response has read of them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision: str | None = "0003"


def upgrade() -> None:
    """Create `conversations`, `conversation_items` and `conversation_turns`."""
    op.create_table(
        "conversations",
        sa.Column("tenant", sa.String(), primary_key=True),
        sa.Column("id", sa.String(), primary_key=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("lease_owner", sa.String()),
        sa.Column("lease_expires_ms", sa.BigInteger()),
        sa.Column("lease_revision", sa.BigInteger()),
        sa.Column("metadata", sa.LargeBinary(), nullable=False),
    )
    op.create_table(
        "conversation_items",
        sa.Column("tenant", sa.String(), primary_key=True),
        sa.Column("conversation_id", sa.String(), primary_key=True),
        sa.Column("position", sa.BigInteger(), primary_key=True),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("removed", sa.BigInteger()),
        sa.Column("item", sa.LargeBinary(), nullable=False),
    )
    by_id = ["tenant", "id", "conversation_id", "position"]
    op.create_index("conversation_items_by_id", "conversation_items", by_id)
    op.create_table(
        "conversation_turns",
        sa.Column("tenant", sa.String(), primary_key=True),
        sa.Column("response_id", sa.String(), primary_key=True),
        sa.Column("conversation_id", sa.String(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
    )
    by_conversation = ["tenant", "conversation_id", "revision"]
    op.create_index("conversation_turns_by_conversation", "conversation_turns", by_conversation)


def downgrade() -> None:
    """Drop them, and every conversation with them."""
    op.drop_table("conversation_turns")
    op.drop_table("conversation_items")
    op.drop_table("conversations")
