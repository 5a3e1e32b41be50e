"""What the stores of one process ask of a database: queries, transactions, and one error.

Unaware of tables and of how connections are made (`sqlite`, `postgresql`). Invariant: what fails below leaves here as a
StoreError that says nothing of the library, the statement or its values.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeVar, TypeVarTuple

import structlog
from sqlalchemy import Executable
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.selectable import TypedReturnsRows

from attache_core.errors import StoreError
from attache_core.storage.prepared import NO_PARAMETERS, Parameters

_Columns = TypeVarTuple("_Columns")
_Result = TypeVar("_Result")

_log = structlog.get_logger(__name__)


class NoConnectionError(Exception):
    """All connections are in use, and were for too long, or too many calls wait for one."""


class Transaction(Protocol):
    """A transaction that is open. Nothing but its statements may be awaited while it is."""

    async def rows(
        self, statement: TypedReturnsRows[*_Columns], parameters: Parameters = NO_PARAMETERS
    ) -> Sequence[tuple[*_Columns]]:
        """All that a statement returns."""
        ...

    async def change(self, statement: Executable, parameters: Parameters = NO_PARAMETERS) -> int:
        """How many rows a statement changed."""
        ...

    async def change_each(self, statement: Executable, rows: Sequence[Parameters]) -> None:
        """Send one statement with the parameters of each row, of which there is at least one."""
        ...


Work = Callable[[Transaction], Awaitable[_Result]]
"""What is done in a transaction. It may be undone and done anew, together with other work or alone, so it has no
effect but that of its statements."""


class Database(Protocol):
    """A database that exists and has its tables; `open_sqlite` or `open_postgresql` makes one, and closes it.

    Attributes:
        dialect: SQLAlchemy's name of it.
    """

    dialect: str

    async def read(
        self, operation: str, statement: TypedReturnsRows[*_Columns], parameters: Parameters = NO_PARAMETERS
    ) -> Sequence[tuple[*_Columns]]:
        """All rows of one query. `operation` is what the log calls it. Raises StoreError."""
        ...

    async def change(
        self,
        operation: str,
        statement: TypedReturnsRows[*_Columns],
        parameters: Parameters = NO_PARAMETERS,
        *,
        durable: bool = True,
    ) -> Sequence[tuple[*_Columns]]:
        """What one statement returns that is a transaction of its own; otherwise as `write`."""
        ...

    async def write(self, operation: str, work: Work[_Result], *, durable: bool = True) -> _Result:
        """Do `work` in a transaction, which is committed when it returns, and leaves nothing when it raises.

        Args:
            operation: what the log calls it.
            work: see `Work`.
            durable: False where a machine that loses its power may lose the change as well. The next durable change
                makes it durable.

        Raises:
            StoreError: it was not committed; or its end is unknown, because the connection broke while it was being
                committed.
        """
        ...


def driver_error(error: Exception) -> BaseException:
    """What the driver raised: SQLAlchemy's own words repeat the statement."""
    if isinstance(error, DBAPIError) and error.orig is not None:
        return error.orig.__cause__ or error.orig
    return error


def words(error: BaseException) -> str:
    """The first line of its message, for PostgreSQL's further ones show values; or what it is, if it has no message."""
    return str(error).partition("\n")[0] or type(error).__name__


@contextmanager
def store_errors(operation: str, *driver_errors: type[Exception]) -> Iterator[None]:
    """What the block raises for want of a database leaves it as a StoreError."""
    expected: tuple[type[Exception], ...] = (*driver_errors, NoConnectionError, OSError)
    try:
        yield
    except expected as error:
        _log.warning("store_unavailable", operation=operation, cause=f"{type(error).__name__}: {words(error)}")
        raise StoreError("The store is out of reach; the same request may succeed later.") from None
