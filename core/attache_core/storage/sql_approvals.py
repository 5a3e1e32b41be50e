"""Approvals over SQLAlchemy, in statements that SQLite and PostgreSQL understand alike.

Invariant: the tenant is part of every statement's condition. An answer is one conditional UPDATE, so the database
itself decides between two callers.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from typing import Final, Literal

from sqlalchemy import Delete, Select, Update, and_, bindparam, delete, exists, insert, select, update

from attache_core.storage.approvals import ApprovalAnswer, ApprovalStore, PendingApproval
from attache_core.storage.database import Database, Transaction
from attache_core.storage.expiry import kept
from attache_core.storage.limits import StoreLimits
from attache_core.storage.row import is_key
from attache_core.storage.store import CONTINUABLE
from attache_core.storage.tables import approvals, responses

Answer = Literal["approved", "denied"]
APPROVED: Final = "approved"
DENIED: Final = "denied"


class SqlApprovals(ApprovalStore):
    """Approvals in a database."""

    def __init__(self, database: Database, limits: StoreLimits) -> None:
        self._database = database
        self._limits = limits
        self._insert = insert(approvals)
        self._select = select_statement()
        self._approve = answer_statement(APPROVED, limits)
        self._deny = answer_statement(DENIED, limits)

    async def ask(self, tenant: str, response_id: str, asked: Sequence[PendingApproval]) -> None:
        """See `ApprovalStore.ask`."""
        owner = {"tenant": tenant, "response_id": response_id, "answer": None}
        rows = [owner | {"id": one.request_id, "salt": one.salt, "fingerprint": one.fingerprint} for one in asked]
        if rows:
            await self._database.write("ask_approvals", lambda transaction: transaction.change_each(self._insert, rows))

    async def load(self, tenant: str, request_ids: Collection[str]) -> dict[str, PendingApproval]:
        """See `ApprovalStore.load`."""
        self._limits.check_items(len(request_ids))
        parameters = {"tenant": tenant, "ids": [request_id for request_id in request_ids if is_key(request_id)]}
        rows = await self._database.read("load_approvals", self._select, parameters)
        return {row[0]: PendingApproval(*row[:3], answered=bool(row[3])) for row in rows}

    async def answer(self, tenant: str, answers: Sequence[ApprovalAnswer]) -> bool:
        """See `ApprovalStore.answer`."""
        if not all(is_key(one.request_id) for one in answers):
            return False
        # In the order of their ids: two callers that take locks in different orders would wait for each other.
        in_order = sorted(answers, key=lambda one: one.request_id)

        async def take(transaction: Transaction) -> None:
            for one in in_order:
                statement = self._approve if one.approved else self._deny
                _require_one(await transaction.change(statement, _parameters(tenant, one)))

        try:
            await self._database.write("answer_approvals", take)
        except _NotTakenError:
            return False
        return True


class _NotTakenError(Exception):
    """Rolls the transaction back: of a turn's answers all are taken, or none."""


def _require_one(taken: int) -> None:
    if taken != 1:
        raise _NotTakenError


async def forget_approvals(transaction: Transaction, tenant: str, response_id: str) -> None:
    """Remove the approvals that a response asked for, within a transaction."""
    await transaction.change(delete_statement(), {"of_tenant": tenant, "of_response": response_id})


def select_statement() -> Select[str, bytes, str, bool]:
    """The approvals of `:tenant` and `:ids`."""
    return select(
        approvals.c.id, approvals.c.salt, approvals.c.fingerprint, approvals.c.answer.is_not(None).label("answered")
    ).where(approvals.c.tenant == bindparam("tenant"), approvals.c.id.in_(bindparam("ids", expanding=True)))


def answer_statement(said: Answer, limits: StoreLimits) -> Update:
    """Take this as the answer to `:of_id`, where there is none yet; for an approval, of the call `:of_call` alone."""
    asked_by = and_(responses.c.tenant == approvals.c.tenant, responses.c.id == approvals.c.response_id, kept(limits))
    statement = (
        update(approvals)
        .where(approvals.c.tenant == bindparam("of_tenant"), approvals.c.id == bindparam("of_id"))
        .where(approvals.c.answer.is_(None), exists().where(asked_by, responses.c.status.in_(sorted(CONTINUABLE))))
        .values(answer=said)
    )
    return statement.where(approvals.c.fingerprint == bindparam("of_call")) if said == APPROVED else statement


@cache
def delete_statement() -> Delete:
    """Remove the approvals of `:of_tenant` and `:of_response`."""
    return delete(approvals).where(
        approvals.c.tenant == bindparam("of_tenant"), approvals.c.response_id == bindparam("of_response")
    )


def _parameters(tenant: str, one: ApprovalAnswer) -> dict[str, str]:
    named = {"of_tenant": tenant, "of_id": one.request_id}
    return named if one.fingerprint is None else named | {"of_call": one.fingerprint}
