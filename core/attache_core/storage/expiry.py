"""Until when a response is there: a condition that every query for responses has, and the removal of what is past it.

Invariants: a response is there for at least as long as `retention_days` says, by the store's clock, and unknown from at
most a second later on, whether it was removed by then or not; one whose time of creation is not known stays. Locks are
taken in the order of `save_turn`: responses, items in the order of their ids, conversations.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import ColumnElement, Select, bindparam, delete, func, or_, select, true, tuple_
from sqlalchemy.sql.dml import ReturningDelete

from attache_core.storage.limits import StoreLimits
from attache_core.storage.store_clock import StoreNowMs
from attache_core.storage.tables import responses

MAX_EXPIRED_TURNS: Final = 100
"""Turns that one transaction removes."""

MAX_EXPIRED_BYTES: Final = 16 * 1024 * 1024
"""Bytes of their stored JSON, taken together, the first one excepted: it is read, to find what leads to them."""

EXPIRY_LOCK: Final = int.from_bytes(b"expire")
"""What the gateways of a PostgreSQL agree on: the number of the lock that whoever removes holds."""


def kept(limits: StoreLimits) -> ColumnElement[bool]:
    """Whether the response of a row is still there."""
    if limits.retention_s is None:
        return true()
    created = responses.c.created_at
    return or_(created.is_(None), created >= _oldest(limits.retention_s))


def oldest_statement(retention_s: int) -> Select[int]:
    """When the oldest response that is kept was created, in seconds since the epoch."""
    return select(_oldest(retention_s))


def any_expired_statement() -> Select[str]:
    """One response that was created before `:oldest`, if there is any."""
    return select(responses.c.id).where(responses.c.created_at < bindparam("oldest")).limit(1)


def expire_statement() -> ReturningDelete[str, str, bytes, bytes]:
    """Remove the first turns that were created before `:oldest`; what they held, as (tenant, id, input, response)."""
    key = (responses.c.tenant, responses.c.id)
    size = func.length(responses.c.input) + func.length(responses.c.response)
    order = (responses.c.created_at, *key)
    first = select(*order, size.label("size")).where(responses.c.created_at < bindparam("oldest"))
    found = first.order_by(*order).limit(MAX_EXPIRED_TURNS).cte("found")
    so_far = func.sum(found.c.size).over(order_by=(found.c.created_at, found.c.tenant, found.c.id))
    sized = select(found.c.tenant, found.c.id, (so_far - found.c.size).label("before"), found.c.size).cte("sized")
    fits = or_(sized.c.before == 0, sized.c.before + sized.c.size <= MAX_EXPIRED_BYTES)
    which = tuple_(*key).in_(select(sized.c.tenant, sized.c.id).where(fits))
    return delete(responses).where(which).returning(*key, responses.c.input, responses.c.response)


def lock_statement() -> Select[bool]:
    """On PostgreSQL: whether this transaction is the one that removes. On SQLite one transaction writes at a time."""
    return select(func.pg_try_advisory_xact_lock(EXPIRY_LOCK))


def _oldest(retention_s: int) -> ColumnElement[int]:
    return StoreNowMs() // 1000 - retention_s
