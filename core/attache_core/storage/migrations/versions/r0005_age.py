"""The index that finds the oldest responses, for those that are kept for a time only."""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision: str | None = "0004"


def upgrade() -> None:
    """Create the index; on a large table it takes as long as reading the table once."""
    op.create_index("responses_by_age", "responses", ["created_at"])


def downgrade() -> None:
    """Drop it."""
    op.drop_index("responses_by_age", "responses")
