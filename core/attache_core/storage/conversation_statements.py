"""The statements of conversations, for SQLite and PostgreSQL alike.

Pure; unaware of connections. Invariant: the tenant is part of every condition. `:the_tenant` and `:the_id` say which
conversation is meant; further parameters are named in the docstrings.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Delete,
    FromClause,
    Select,
    String,
    Update,
    and_,
    bindparam,
    cast,
    delete,
    exists,
    func,
    or_,
    select,
    update,
)
from sqlalchemy.sql.dml import ReturningUpdate

from attache_core.storage.conversation_tables import conversation_items, conversation_turns, conversations
from attache_core.storage.limits import StoreLimits
from attache_core.storage.store_clock import StoreNowMs
from attache_core.types.paging import Page

_tenant = bindparam("the_tenant", type_=String)
_id = bindparam("the_id", type_=String)
_owner = bindparam("owner", type_=String)

this_conversation = and_(conversations.c.tenant == _tenant, conversations.c.id == _id)
its_items = and_(conversation_items.c.tenant == _tenant, conversation_items.c.conversation_id == _id)
present_items = and_(its_items, conversation_items.c.removed.is_(None))
_free = {"lease_owner": None, "lease_expires_ms": None, "lease_revision": None}


def advance_statement() -> ReturningUpdate[int]:
    """Count `:steps` changes of a conversation, and lock its row until the transaction ends; the new revision."""
    revision = conversations.c.revision + bindparam("steps", type_=BigInteger)
    return update(conversations).where(this_conversation).values(revision=revision).returning(conversations.c.revision)


def lease_statement() -> ReturningUpdate[int]:
    """Let `:owner` have a conversation that is free, for `:ttl_ms`; what it reads."""
    lease = conversations.c.lease_owner, conversations.c.lease_expires_ms
    is_free = or_(lease[0].is_(None), lease[1] <= StoreNowMs())
    return (
        update(conversations)
        .where(this_conversation, is_free)
        .values(lease_owner=_owner, lease_expires_ms=_expiry(), lease_revision=conversations.c.revision)
        .returning(conversations.c.revision)
    )


def renew_statement() -> Update:
    """Let `:owner` keep what it has for `:ttl_ms` from now."""
    return update(conversations).where(this_conversation, _is_held()).values(lease_expires_ms=_expiry())


def release_statement() -> Update:
    """Take from `:owner` what it has."""
    return update(conversations).where(this_conversation, _is_held()).values(_free)


def end_lease_statement() -> ReturningUpdate[int]:
    """The same, and count `:steps` changes; the new revision."""
    return advance_statement().where(_is_held()).values(_free)


def break_lease_statement() -> Update:
    """Take a conversation from the turn that has read the item at `:position`."""
    return (
        update(conversations).where(this_conversation, conversations.c.lease_revision > bindparam("at")).values(_free)
    )


def remove_statement() -> Update:
    """Mark items as removed at `:at`."""
    return update(conversation_items).where(present_items).values(removed=bindparam("at"))


def purge_statement() -> Delete:
    """Delete the removed items that no stored response has read."""
    turns, items = conversation_turns.c, conversation_items.c
    read = exists().where(
        turns.tenant == items.tenant,
        turns.conversation_id == items.conversation_id,
        turns.revision > items.position,
        turns.revision <= items.removed,
    )
    return delete(conversation_items).where(its_items, items.removed.is_not(None), ~read)


def page_statement(limits: StoreLimits, page: Page, position: int | None) -> Select[bytes]:
    """The items after `position` in the order of the page, and one more; None in place of those past `max_page_bytes`.

    The first is there whatever its size, so that reading page after page comes to an end.
    """
    items, is_ascending = conversation_items.c, page.order == "asc"
    wanted = select(items.position, func.length(items.item).label("size")).where(present_items)
    if position is not None:
        wanted = wanted.where(items.position > position if is_ascending else items.position < position)
    order = items.position.asc() if is_ascending else items.position.desc()
    page_rows = wanted.order_by(order).limit(page.limit + 1).cte("page")
    order = page_rows.c.position.asc() if is_ascending else page_rows.c.position.desc()
    before = (func.sum(page_rows.c.size).over(order_by=order) - page_rows.c.size).label("before")
    sized = select(page_rows, before).cte("sized")
    fits = or_(sized.c.before == 0, sized.c.before + sized.c.size <= limits.max_page_bytes)
    order = sized.c.position.asc() if is_ascending else sized.c.position.desc()
    return (
        select(items.item)
        .select_from(sized.outerjoin(conversation_items, and_(fits, its_items, items.position == sized.c.position)))
        .order_by(order)
    )


def history_statement(limits: StoreLimits) -> Select[int, int, bytes]:
    """The items of a conversation at `:revision` (null: now), oldest first, as `_history` says."""
    asked = func.coalesce(cast(bindparam("revision"), BigInteger), conversations.c.revision)
    return _history(conversations, conversations.c.id, asked, this_conversation, limits)


def history_of_statement(limits: StoreLimits) -> Select[int, int, bytes]:
    """The items that the response `:the_id` had read, oldest first, as `_history` says."""
    turn = and_(conversation_turns.c.tenant == _tenant, conversation_turns.c.response_id == _id)
    columns = conversation_turns.c
    return _history(conversation_turns, columns.conversation_id, columns.revision, turn, limits)


def found_items_statement(limits: StoreLimits) -> Select[int, str, bytes]:
    """The items of `:ids` in any conversation, as (bytes of all, id, item); one of each id, however many have it.

    As in `_history`, no item is read when all of them have too many bytes.
    """
    items = conversation_items.c
    found = and_(items.tenant == _tenant, items.removed.is_(None), items.id.in_(bindparam("ids", expanding=True)))
    place = items.conversation_id, items.position
    number = func.row_number().over(partition_by=items.id, order_by=[column.desc() for column in place])
    copies = select(*place, items.id, func.length(items.item).label("size"), number.label("number"))
    numbered = copies.where(found).cte("numbered")
    total = cast(func.sum(numbered.c.size).over(), BigInteger).label("bytes")
    sized = select(numbered, total).where(numbered.c.number == 1).cte("sized")
    within = and_(sized.c.bytes <= limits.max_items_bytes, items.tenant == _tenant)
    same = and_(within, items.conversation_id == sized.c.conversation_id, items.position == sized.c.position)
    return select(sized.c.bytes, sized.c.id, items.item).select_from(sized.outerjoin(conversation_items, same))


def _history(
    source: FromClause,
    conversation_id: ColumnElement[str],
    revision: ColumnElement[int],
    condition: ColumnElement[bool],
    limits: StoreLimits,
) -> Select[int, int, bytes]:
    """(count, bytes, item) of each item, or one row with no item where there is none, and no row for an unknown id.

    No item is read when they are too many or too large.
    """
    items = conversation_items.c
    there = and_(items.position < revision, or_(items.removed.is_(None), items.removed >= revision))
    joined = and_(items.tenant == source.c.tenant, items.conversation_id == conversation_id, there)
    sized = (
        select(items.conversation_id, items.position, *_sums())
        .select_from(source.outerjoin(conversation_items, joined))
        .where(condition)
        .cte("sized")
    )
    count, size = sized.c.count, sized.c.bytes
    within = and_(count <= limits.max_conversation_items, size <= limits.max_conversation_bytes)
    same = and_(items.tenant == _tenant, items.conversation_id == sized.c.conversation_id)
    return (
        select(count, size, items.item)
        .select_from(sized.outerjoin(conversation_items, and_(within, same, items.position == sized.c.position)))
        .order_by(sized.c.position)
    )


def _sums() -> tuple[ColumnElement[int], ColumnElement[int]]:
    """How many items all rows together are, and how many bytes."""
    size = func.coalesce(func.sum(func.length(conversation_items.c.item)).over(), 0)
    return (
        func.count(conversation_items.c.position).over().label("count"),
        cast(size, BigInteger).label("bytes"),
    )


def _is_held() -> ColumnElement[bool]:
    return conversations.c.lease_owner == _owner


def _expiry() -> ColumnElement[int]:
    return StoreNowMs() + bindparam("ttl_ms", type_=BigInteger)
