"""How much a SQLite database holds, whatever its tables are."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path


def stored_bytes(database: Path) -> int:
    """The length of all values in all rows, without indexes and what the file spends on pages; numbers as digits."""
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return sum(_table_bytes(connection, table) for table in tables)


def _table_bytes(connection: sqlite3.Connection, table: str) -> int:
    columns = [name for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))]
    lengths = " + ".join(f'ifnull(length(CAST("{column}" AS BLOB)), 0)' for column in columns)
    (total,) = connection.execute(f'SELECT total({lengths}) FROM "{table}"').fetchone()
    return int(total)
