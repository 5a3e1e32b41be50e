"""What the turn needs of a store to have calls approved: each is asked for once and answered once.

Knows nothing of calls: what an approval is bound to is in its fingerprint, which is the turn's to make. Invariants: an
answer is taken once, whoever else gives one at the same time, and only where the response that asked is stored and may
be continued; the rows of a response can be removed with it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class PendingApproval:
    """A call that waits for its approval.

    Attributes:
        request_id: the public id of the `mcp_approval_request` item.
        salt: what the fingerprint was made with.
        fingerprint: what the approval is bound to.
        answered: whether an answer was taken.
    """

    request_id: str
    salt: bytes
    fingerprint: str
    answered: bool = False


@dataclass(frozen=True, slots=True)
class ApprovalAnswer:
    """What a user says to one of them.

    Attributes:
        fingerprint: what the approved call would be; None for a denial, after which nothing runs.
    """

    request_id: str
    fingerprint: str | None

    @property
    def approved(self) -> bool:
        """Whether the call may run."""
        return self.fingerprint is not None


class ApprovalStore(Protocol):
    """Approvals by the id of their request, each belonging to a tenant and to the response that asked."""

    async def ask(self, tenant: str, response_id: str, asked: Sequence[PendingApproval]) -> None:
        """Write what one response asks for, durably, in one transaction, before the client is told that it did.

        Raises:
            StoreError: the store is out of reach; nothing was written.
        """
        ...

    async def load(self, tenant: str, request_ids: Collection[str]) -> dict[str, PendingApproval]:
        """The approvals of these ids, by id, answered ones included; one that is unknown is left out.

        Raises:
            StoreError: the store is out of reach.
            ClientError: 400, more ids than `max_items`.
        """
        ...

    async def answer(self, tenant: str, answers: Sequence[ApprovalAnswer]) -> bool:
        """Take all these answers, or none and say False.

        None, where one is to an approval that is unknown or answered, that is bound to another fingerprint, or whose
        response is not stored or cannot be continued. Of two callers at once, one gets True.

        Raises:
            StoreError: the store is out of reach; whether the answers were taken is not known.
        """
        ...
