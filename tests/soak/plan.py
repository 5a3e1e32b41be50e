"""How long a soak is, who takes part, and what is killed meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from attache_core.turn.departure import OnDisconnect

Victim = Literal["worker", "postgresql", "envoy"]


@dataclass(frozen=True, slots=True)
class Plan:
    """One soak.

    Attributes:
        duration_s: for how long clients begin new turns.
        kills: what is killed, in this order, at even intervals.
        leaving: the share of turns whose clients hang up in the middle.
        on_disconnect: what becomes of these, as the setting of `persist` says.
    """

    clients: int
    conversations: int
    workers: int
    duration_s: float
    kills: tuple[Victim, ...]
    leaving: float = 0.03
    on_disconnect: OnDisconnect = "cancel"

    def on_sqlite(self) -> Plan:
        """The same where there is no server of the store to kill."""
        return replace(self, kills=tuple("worker" if victim == "postgresql" else victim for victim in self.kills))


FULL = Plan(
    clients=32,
    conversations=4,
    workers=4,
    duration_s=60.0,
    kills=("worker", "postgresql", "envoy", "postgresql", "worker", "envoy", "postgresql", "worker"),
)

SHORT = Plan(clients=8, conversations=2, workers=2, duration_s=3.0, kills=("worker", "postgresql"), leaving=0.1)
"""For every run of the tests."""

SHORT_WITH_ENVOY = replace(SHORT, kills=("worker", "envoy"))
"""The same, with a gateway that ends and is started again."""
