"""The store's own clock, in SQL: gateways on different machines agree on it, whatever their own clocks say."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.expression import FunctionElement


class StoreNowMs(FunctionElement[int]):
    """Milliseconds since the epoch, at the moment of the statement."""

    type = BigInteger()
    inherit_cache = True


@compiles(StoreNowMs, "sqlite")
def _on_sqlite(_element: StoreNowMs, _compiler: Any, **_: object) -> str:  # noqa: ANN401 - SQLAlchemy's compiler
    return "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"


@compiles(StoreNowMs, "postgresql")
def _on_postgresql(_element: StoreNowMs, _compiler: Any, **_: object) -> str:  # noqa: ANN401 - SQLAlchemy's compiler
    return "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)"
