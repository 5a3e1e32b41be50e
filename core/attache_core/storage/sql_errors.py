"""What fails below SQLAlchemy as the one error that a store raises, which says nothing of libraries and values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import structlog
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from attache_core.errors import StoreError

_log = structlog.get_logger(__name__)


@contextmanager
def store_errors(operation: str) -> Iterator[None]:
    """Raises StoreError for every failure of the database in the block; `operation` is for the log."""
    try:
        yield
    except (SQLAlchemyError, OSError) as error:
        _log.warning("store_unavailable", operation=operation, cause=_cause(error))
        raise StoreError("The store is out of reach; the same request may succeed later.") from error


def _cause(error: Exception) -> str:
    """The driver's own words where there are any: SQLAlchemy's repeat the statement."""
    original = error.orig if isinstance(error, DBAPIError) else error
    return f"{type(original).__name__}: {original}"
