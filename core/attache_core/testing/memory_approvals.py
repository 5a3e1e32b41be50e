"""Approvals in a dict, for `MemoryStore`. They pass `ApprovalContract`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace

from attache_core.storage.approvals import ApprovalAnswer, ApprovalStore, PendingApproval
from attache_core.storage.limits import StoreLimits


@dataclass(frozen=True, slots=True)
class _Row:
    response_id: str
    approval: PendingApproval


class MemoryApprovals(ApprovalStore):
    """Approvals in memory.

    Args:
        check: raises StoreError when the store is to be down.
        is_continuable: whether a tenant's response is stored and may be continued.
    """

    def __init__(
        self, limits: StoreLimits, check: Callable[[], Awaitable[None]], is_continuable: Callable[[str, str], bool]
    ) -> None:
        self._limits = limits
        self._check = check
        self._is_continuable = is_continuable
        self._rows: dict[tuple[str, str], _Row] = {}

    async def ask(self, tenant: str, response_id: str, asked: Sequence[PendingApproval]) -> None:
        """See `ApprovalStore.ask`."""
        await self._check()
        self._rows.update({(tenant, one.request_id): _Row(response_id, one) for one in asked})

    async def load(self, tenant: str, request_ids: Collection[str]) -> dict[str, PendingApproval]:
        """See `ApprovalStore.load`."""
        self._limits.check_items(len(request_ids))
        await self._check()
        return {key: self._rows[tenant, key].approval for key in request_ids if (tenant, key) in self._rows}

    async def answer(self, tenant: str, answers: Sequence[ApprovalAnswer]) -> bool:
        """See `ApprovalStore.answer`."""
        await self._check()
        different = len({one.request_id for one in answers}) == len(answers)
        if not different or not all(self._may_take(tenant, one) for one in answers):
            return False
        for one in answers:
            row = self._rows[tenant, one.request_id]
            self._rows[tenant, one.request_id] = replace(row, approval=replace(row.approval, answered=True))
        return True

    def forget(self, tenant: str, response_id: str) -> None:
        """Remove what a response asked for."""
        removed = [key for key, row in self._rows.items() if (key[0], row.response_id) == (tenant, response_id)]
        for key in removed:
            del self._rows[key]

    def _may_take(self, tenant: str, one: ApprovalAnswer) -> bool:
        row = self._rows.get((tenant, one.request_id))
        if row is None or row.approval.answered or not self._is_continuable(tenant, row.response_id):
            return False
        return one.fingerprint in (None, row.approval.fingerprint)
