"""How long things took that were asked in turn, and what one took longer than others, each time.

All are asked again and again in the same order, so that whatever else the machine does meets them alike.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter


@dataclass(slots=True)
class Times:
    """Milliseconds by what took them, one for each repetition; and how many were not good."""

    taken: dict[str, list[float]] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)

    async def measure(self, name: str, ask: Callable[[], Awaitable[bool]]) -> None:
        """Ask once; `ask` tells whether it went well."""
        started_at = perf_counter()
        good = await ask()
        self.taken.setdefault(name, []).append(1000 * (perf_counter() - started_at))
        self.errors[name] = self.errors.get(name, 0) + (not good)

    def added(self, name: str, *parts: str) -> float:
        """The median of what one thing took longer than others together, each time."""
        beside = zip(*(self.taken[part] for part in parts), strict=True)
        more: list[float] = [took - sum(others) for took, others in zip(self.taken[name], beside, strict=True)]
        return median(more)

    def added_at_best(self, name: str, *parts: str) -> float:
        """The same of the fastest of each, which other load on the machine disturbs least."""
        return min(self.taken[name]) - sum(min(self.taken[part]) for part in parts)
