"""The table that leads from an item's id to its turn, filled from the turns that are there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision: str | None = "0001"

_TURNS = (
    "SELECT tenant, id, input, response FROM responses WHERE status IS NULL OR status <> 'failed' ORDER BY created_at"
)
_POINT = (
    "INSERT INTO items (tenant, id, response_id) VALUES (:tenant, :id, :response_id) "
    "ON CONFLICT (tenant, id) DO UPDATE SET response_id = excluded.response_id"
)


def upgrade() -> None:
    """Create `items`."""
    op.create_table(
        "items",
        sa.Column("tenant", sa.String(), primary_key=True),
        sa.Column("id", sa.String(), primary_key=True),
        sa.Column("response_id", sa.String(), nullable=False),
        sqlite_with_rowid=False,
    )
    for turn in op.get_bind().execute(sa.text(_TURNS)).mappings():
        rows = [
            {"tenant": turn["tenant"], "id": item_id, "response_id": turn["id"]}
            for item_id in _item_ids(json.loads(turn["input"]), json.loads(turn["response"]))
        ]
        if rows:
            op.get_bind().execute(sa.text(_POINT), rows)


def downgrade() -> None:
    """Drop `items`."""
    op.drop_table("items")


def _item_ids(given: list[Any], response: dict[str, Any]) -> Iterator[str]:
    output = response.get("output")
    for item in [*given, *(output if isinstance(output, list) else [])]:
        item_id = item.get("id") if isinstance(item, dict) else None
        if isinstance(item_id, str) and _is_key(item_id):
            yield item_id


def _is_key(text: str) -> bool:
    return bool(text) and "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)
