"""The table of turns."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision: str | None = None


def upgrade() -> None:
    """Create `responses`."""
    op.create_table(
        "responses",
        sa.Column("tenant", sa.String(), primary_key=True),
        sa.Column("id", sa.String(), primary_key=True),
        sa.Column("previous_id", sa.String()),
        sa.Column("created_at", sa.BigInteger()),
        sa.Column("status", sa.String()),
        sa.Column("input", sa.LargeBinary(), nullable=False),
        sa.Column("response", sa.LargeBinary(), nullable=False),
    )


def downgrade() -> None:
    """Drop `responses`, and every conversation with it."""
    op.drop_table("responses")
