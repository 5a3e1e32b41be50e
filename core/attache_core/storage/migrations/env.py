"""Alembic runs this module to apply revisions, over the connection and in the transaction that `migrate` holds."""

from __future__ import annotations

from alembic import context

context.configure(connection=context.config.attributes["connection"], transactional_ddl=False)
context.run_migrations()
