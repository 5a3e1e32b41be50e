"""The statements of conversations, for SQLite and PostgreSQL alike.

Pure; unaware of connections. Invariant: the tenant is part of every condition. `:the_tenant` and `:the_id` say which
conversation is meant; further parameters are named in the docstrings. Each statement is built once, and prepared once
by each store.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Delete,
    FromClause,
    Insert,
    Select,
    String,
    Update,
    and_,
    bindparam,
    cast,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    true,
    update,
)
from sqlalchemy.sql.dml import ReturningDelete, ReturningUpdate

from attache_core.storage.conversation_tables import conversation_items, conversation_turns, conversations
from attache_core.storage.limits import StoreLimits
from attache_core.storage.store_clock import StoreNowMs
from attache_core.types.paging import Order

_tenant = bindparam("the_tenant", type_=String)
_id = bindparam("the_id", type_=String)
_owner = bindparam("owner", type_=String)

this_conversation = and_(conversations.c.tenant == _tenant, conversations.c.id == _id)
its_items = and_(conversation_items.c.tenant == _tenant, conversation_items.c.conversation_id == _id)
present_items = and_(its_items, conversation_items.c.removed.is_(None))
_this_item = and_(present_items, conversation_items.c.id == bindparam("item_id", type_=String))
_MAX_POSITION: Final = 2**63 - 1
_free = {"lease_owner": None, "lease_expires_ms": None, "lease_revision": None}


@cache
def create_statement() -> Insert:
    """A new row of `conversations`."""
    return insert(conversations)


@cache
def load_statement() -> Select[int, bytes]:
    """When a conversation was created, and its metadata."""
    return select(conversations.c.created_at, conversations.c.metadata).where(this_conversation)


@cache
def update_statement() -> ReturningUpdate[int, bytes]:
    """Let its metadata be `:new_metadata`; what `load_statement` answers after that."""
    changed = update(conversations).where(this_conversation).values(metadata=bindparam("new_metadata"))
    return changed.returning(conversations.c.created_at, conversations.c.metadata)


@cache
def delete_statement() -> ReturningDelete[int]:
    """Delete the row of a conversation; its revision."""
    return delete(conversations).where(this_conversation).returning(conversations.c.revision)


@cache
def insert_item_statement() -> Insert:
    """A new row of `conversation_items`."""
    return insert(conversation_items)


@cache
def insert_turn_statement() -> Insert:
    """A new row of `conversation_turns`."""
    return insert(conversation_turns)


@cache
def forget_turn_statement() -> ReturningDelete[str, int]:
    """Delete what the response `:the_id` had read: which conversation, at which revision."""
    turns = conversation_turns.c
    deleted = delete(conversation_turns).where(turns.tenant == _tenant, turns.response_id == _id)
    return deleted.returning(turns.conversation_id, turns.revision)


@cache
def present_statement() -> Select[str]:
    """One of `:ids` that an item of a conversation has."""
    items = conversation_items.c
    return select(items.id).where(present_items, items.id.in_(bindparam("ids", expanding=True))).limit(1)


@cache
def item_statement() -> Select[bytes]:
    """The last item of a conversation whose id is `:item_id`."""
    items = conversation_items.c
    return select(items.item).where(_this_item).order_by(items.position.desc()).limit(1)


@cache
def position_statement(order: Order) -> Select[int]:
    """Where that item is; of several, the one that a page in this order shows last."""
    position = conversation_items.c.position
    last = position.desc() if order == "asc" else position.asc()
    return select(position).where(_this_item).order_by(last).limit(1)


@cache
def advance_statement() -> ReturningUpdate[int]:
    """Count `:steps` changes of a conversation, and lock its row until the transaction ends; the new revision."""
    revision = conversations.c.revision + bindparam("steps", type_=BigInteger)
    return update(conversations).where(this_conversation).values(revision=revision).returning(conversations.c.revision)


@cache
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


@cache
def renew_statement() -> ReturningUpdate[int]:
    """Let `:owner` keep what it has for `:ttl_ms` from now; what it reads, if it has it."""
    renewed = update(conversations).where(this_conversation, _is_held()).values(lease_expires_ms=_expiry())
    return renewed.returning(conversations.c.lease_revision)


@cache
def release_statement() -> ReturningUpdate[int]:
    """Take from `:owner` what it has; its revision."""
    released = update(conversations).where(this_conversation, _is_held()).values(_free)
    return released.returning(conversations.c.revision)


@cache
def end_lease_statement() -> ReturningUpdate[int]:
    """The same, and count `:steps` changes; the new revision."""
    return advance_statement().where(_is_held()).values(_free)


@cache
def break_lease_statement() -> Update:
    """Take a conversation from the turn that has read the item at `:position`."""
    return (
        update(conversations).where(this_conversation, conversations.c.lease_revision > bindparam("at")).values(_free)
    )


@cache
def remove_statement() -> Update:
    """Mark items as removed at `:at`."""
    return update(conversation_items).where(present_items).values(removed=bindparam("at"))


@cache
def remove_item_statement() -> ReturningUpdate[int]:
    """The same for those whose id is `:item_id`; where they were."""
    return remove_statement().where(_this_item).returning(conversation_items.c.position)


@cache
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


@cache
def purge_item_statement() -> Delete:
    """The same among those whose id is `:item_id`."""
    return purge_statement().where(conversation_items.c.id == bindparam("item_id", type_=String))


@cache
def purge_read_statement() -> Delete:
    """The same among those that were there at revision `:at`."""
    items, at = conversation_items.c, bindparam("at", type_=BigInteger)
    return purge_statement().where(items.position < at, items.removed >= at)


def page_statement(limits: StoreLimits, order: Order) -> Select[bytes]:
    """The first `:rows` items after the position `:after` (null: all) in this order; None for those past the limit.

    The first item is there whatever its size, so that reading page after page comes to an end.
    """
    items, is_ascending = conversation_items.c, order == "asc"
    after = func.coalesce(cast(bindparam("after"), BigInteger), -1 if is_ascending else _MAX_POSITION)
    beyond = items.position > after if is_ascending else items.position < after
    wanted = select(items.position, func.length(items.item).label("size")).where(present_items, beyond)
    by_position = items.position.asc() if is_ascending else items.position.desc()
    page_rows = wanted.order_by(by_position).limit(bindparam("rows", type_=BigInteger)).cte("page")
    by_position = page_rows.c.position.asc() if is_ascending else page_rows.c.position.desc()
    before = (func.sum(page_rows.c.size).over(order_by=by_position) - page_rows.c.size).label("before")
    sized = select(page_rows, before).cte("sized")
    fits = or_(sized.c.before == 0, sized.c.before + sized.c.size <= limits.max_page_bytes)
    by_position = sized.c.position.asc() if is_ascending else sized.c.position.desc()
    return (
        select(items.item)
        .select_from(sized.outerjoin(conversation_items, and_(fits, its_items, items.position == sized.c.position)))
        .order_by(by_position)
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
    asked = select(source.c.tenant, conversation_id.label("id"), revision.label("at")).where(condition).cte("asked")
    at = asked.c.at
    there = and_(items.position < at, or_(items.removed.is_(None), items.removed >= at))
    joined = and_(items.tenant == asked.c.tenant, items.conversation_id == asked.c.id, there)
    count, size = func.count(items.position), func.coalesce(func.sum(func.length(items.item)), 0)
    sums = select(count.label("count"), cast(size, BigInteger).label("bytes"))
    total = sums.select_from(asked.join(conversation_items, joined)).cte("total")
    within = and_(
        total.c.count <= limits.max_conversation_items, total.c.bytes <= limits.max_conversation_bytes, joined
    )
    return (
        select(total.c.count, total.c.bytes, items.item)
        .select_from(asked.join(total, true()).outerjoin(conversation_items, within))
        .order_by(items.position)
    )


def _is_held() -> ColumnElement[bool]:
    return conversations.c.lease_owner == _owner


def _expiry() -> ColumnElement[int]:
    return StoreNowMs() + bindparam("ttl_ms", type_=BigInteger)
