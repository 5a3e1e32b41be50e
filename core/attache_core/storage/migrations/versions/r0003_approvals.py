"""The table of calls that wait for an approval."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision: str | None = "0002"


def upgrade() -> None:
    """Create `approvals`."""
    op.create_table(
        "approvals",
        sa.Column("tenant", sa.String(), primary_key=True),
        sa.Column("id", sa.String(), primary_key=True),
        sa.Column("response_id", sa.String(), nullable=False),
        sa.Column("salt", sa.LargeBinary(), nullable=False),
        sa.Column("fingerprint", sa.String(), nullable=False),
        sa.Column("answer", sa.String()),
    )
    op.create_index("approvals_of_response", "approvals", ["tenant", "response_id"])


def downgrade() -> None:
    """Drop `approvals`: nobody can answer what was asked."""
    op.drop_table("approvals")
