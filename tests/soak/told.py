"""What one client was told of one turn, and what the model heard of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from attache_core.json_codec import Json

Outcome = Literal["completed", "refused", "unknown"]


@dataclass(frozen=True, slots=True)
class Told:
    """One turn.

    Attributes:
        words: what the client said; no two turns say the same.
        sent_at, ended_at: on the clock of all clients, in seconds.
        outcome: `completed`; `refused`, so that it must have left nothing; or `unknown`: the answer broke off, the
            client left, or the gateway says itself that it cannot know.
        response: of a completed turn.
        told: in words, for the figures.
    """

    words: str
    conversation: str
    sent_at: float
    ended_at: float
    outcome: Outcome
    told: str
    response: Json | None = None


def answer_to(words: str) -> str:
    """What the model says to these words."""
    return f"You said: {words}"


def digest(texts: Iterable[str]) -> str:
    """Stands for the texts of a conversation, in order."""
    return "" if not (all_texts := list(texts)) else hashlib.sha256("\0".join(all_texts).encode()).hexdigest()


def text_of(item: Json) -> str:
    """The text of a message, as clients see it or as the model is sent it."""
    content = item["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)
