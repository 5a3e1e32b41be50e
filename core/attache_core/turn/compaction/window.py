"""What of a conversation the model is told, and what of that gives way to a new checkpoint.

Knows items and estimates of their tokens; makes no summary. Invariants: the latest checkpoint stands for everything
before it, and only that one is opened; no call is parted from its output; past a threshold, the user's newest message
is told word for word, and what the model is told ends with something to answer. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attache_core.errors import ClientError
from attache_core.json_codec import Json
from attache_core.turn.compaction.checkpoint import Checkpoint, text_message, without_type
from attache_core.turn.compaction.terms import CompactionTerms
from attache_core.turn.compaction.tokens import item_tokens
from attache_core.turn.cuts import cuts, newest_of_user, turn_cuts
from attache_core.types.compaction import COMPACTION, TRIGGER

if TYPE_CHECKING:
    # Its cryptography is loaded only where there are keys.
    from attache_core.turn.compaction.seal import Seal

CONTINUE = "Continue from the summary above."
"""What the model answers where no message of the user's is left to answer."""

_ORDERS = frozenset({"system", "developer"})
_SHARE = 4
"""Of a threshold: a quarter of it is the most that is kept of each kind, and the least that is worth a summary."""


@dataclass(frozen=True, slots=True)
class Window:
    """What the model is told.

    Attributes:
        items: all of it, the latest checkpoint opened.
        newer: how many of them, counted from the end, came after the checkpoint; all where there is none.
        triggered: whether the client asks for a checkpoint now, and for nothing else.
    """

    items: tuple[Json, ...]
    newer: int
    triggered: bool

    @property
    def is_compacted(self) -> bool:
        """Whether a checkpoint stands for some of it."""
        return self.newer < len(self.items)


@dataclass(frozen=True, slots=True)
class Division:
    """A window cut in two.

    Attributes:
        old: what is to be summed up.
        before: of `old`, the messages that are told word for word all the same.
        after: what follows the summary.
    """

    old: tuple[Json, ...]
    before: tuple[Json, ...]
    after: tuple[Json, ...]

    def checkpoint(self, summary: str) -> Checkpoint:
        """The checkpoint with that summary."""
        return Checkpoint(self.before, summary, self.after)


def open_window(items: Sequence[Json], seal: Seal, tenant: str) -> Window:
    """The window of a conversation, history first.

    Raises:
        ClientError: 400, the latest checkpoint cannot be opened.
    """
    triggered = bool(items) and items[-1].get("type") == TRIGGER
    newer = list(items)
    told: list[Json] = []
    for place in range(len(items) - 1, -1, -1):
        if items[place].get("type") == COMPACTION:
            told = seal.open(tenant, str(items[place].get("encrypted_content"))).told
            newer = list(items[place + 1 :])
            break
    newer = without_type(newer, TRIGGER)
    return Window((*told, *newer), len(newer), triggered)


def outgrown(window: Window, beside: int, threshold: int, terms: CompactionTerms) -> Division | None:
    """What gives way in a window that has outgrown its threshold; None where it has not, or nothing would be gained.

    `beside` are the tokens of what the model is told besides: instructions and tools. Since the last checkpoint at
    least a quarter of the threshold must have come, so that no turn spends its time on summaries of next to nothing.
    """
    per_token = terms.bytes_per_token
    sizes = [item_tokens(item, per_token) for item in window.items]
    newer = sum(sizes[len(sizes) - window.newer :])
    if beside + sum(sizes) <= threshold or newer < threshold // _SHARE:
        return None
    budget = min(terms.max_kept_tokens, threshold // _SHARE)
    asked = newest_of_user(window.items)
    if asked >= 0:
        sizes[asked] = 0  # what the turn is about stays, however large it is
    cut = next((place for place in turn_cuts(window.items) if sum(sizes[place:]) <= budget), 0)
    return _divided(window.items, cut, asked, kept_messages(window.items[:cut], budget, per_token)) if cut else None


def _divided(items: Sequence[Json], cut: int, asked: int, before: tuple[Json, ...]) -> Division:
    """The items cut at `cut`; `asked` is the place of the user's newest message, which is told in any case."""
    old, after = tuple(items[:cut]), tuple(items[cut:])
    if 0 <= asked < cut:
        before = (*(item for item in before if item is not items[asked]), items[asked])
    if after:
        return Division(old, before, after)
    # A model that is to speak after its own words may think that it has spoken.
    if asked >= 0:
        return Division(old, before[:-1], before[-1:])
    return Division(old, before, (text_message("user", CONTINUE),))


def everything(items: Sequence[Json], terms: CompactionTerms) -> Division:
    """What gives way where a client asks for a checkpoint: all but what waits for an answer of the client's.

    Raises:
        ClientError: 400, there is nothing else.
    """
    cut = cuts(items)[-1]
    if not cut:
        raise ClientError("There is nothing to compact.", param="input")
    old = tuple(items[:cut])
    return Division(old, kept_messages(old, terms.max_kept_tokens, terms.bytes_per_token), tuple(items[cut:]))


def kept_messages(items: Sequence[Json], budget: int, per_token: float) -> tuple[Json, ...]:
    """The messages that are told word for word: all that give orders, and of the user's the newest within `budget`."""
    kept: list[Json] = []
    for item in reversed(items):
        if item.get("type", "message") != "message":
            continue
        if item.get("role") in _ORDERS:
            kept.append(item)
        elif item.get("role") == "user":
            size = item_tokens(item, per_token)
            if size <= budget:
                budget -= size
                kept.append(item)
    return tuple(reversed(kept))
