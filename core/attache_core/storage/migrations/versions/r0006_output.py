"""Where in a response's text its output is, so that a turn which continues it need not decode the rest.

Turns that are there keep their rows as they are: of them the whole text is decoded.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision: str | None = "0005"


def upgrade() -> None:
    """Add the columns, which are empty in the rows that are there."""
    op.add_column("responses", sa.Column("output_at", sa.BigInteger()))
    op.add_column("responses", sa.Column("output_bytes", sa.BigInteger()))


def downgrade() -> None:
    """Drop them."""
    op.drop_column("responses", "output_bytes")
    op.drop_column("responses", "output_at")
