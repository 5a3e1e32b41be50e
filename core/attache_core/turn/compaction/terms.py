"""When a conversation is compacted, and how much of it stays word for word."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_KEPT_TOKENS = 20_000
DEFAULT_SUMMARY_TOKENS = 8192
DEFAULT_BYTES_PER_TOKEN = 4.0


@dataclass(frozen=True, slots=True)
class CompactionTerms:
    """Bounds of a compaction.

    Attributes:
        threshold_tokens: how large what the model is told may become, where the request does not say; None is no bound.
        max_kept_tokens: what is kept word for word of the user's messages, and as much again of what is newest; never
            more than a quarter of the threshold each.
        max_summary_tokens: what the model may write, its reasoning included.
        bytes_per_token: by which tokens are estimated.
    """

    threshold_tokens: int | None = None
    max_kept_tokens: int = DEFAULT_KEPT_TOKENS
    max_summary_tokens: int = DEFAULT_SUMMARY_TOKENS
    bytes_per_token: float = DEFAULT_BYTES_PER_TOKEN
