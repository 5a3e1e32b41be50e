"""The history of the schema, for Alembic: one module per revision in `versions`."""
