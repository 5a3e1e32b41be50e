"""What the filters that make checkpoints may be set to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from attache_core.errors import ConfigError
from attache_core.turn.compaction.terms import (
    DEFAULT_BYTES_PER_TOKEN,
    DEFAULT_KEPT_TOKENS,
    DEFAULT_SUMMARY_TOKENS,
    CompactionTerms,
)
from attache_filters.sdk.filter import FilterConfig, Services

if TYPE_CHECKING:
    from attache_core.turn.compaction.seal import Seal


class CheckpointSettings(FilterConfig):
    """The bounds of one checkpoint."""

    max_kept_tokens: int = Field(default=DEFAULT_KEPT_TOKENS, ge=0)
    """Tokens, as estimated, of the user's messages that are kept word for word, and as many again of the newest items.
    Where there is a threshold, never more than a quarter of it each."""

    max_summary_tokens: int = Field(default=DEFAULT_SUMMARY_TOKENS, ge=16)
    """Tokens that the model may write for a summary, its reasoning included; one that is longer is not used."""

    bytes_per_token: float = Field(default=DEFAULT_BYTES_PER_TOKEN, gt=0, le=64)
    """How many bytes of JSON count as one token: 4 suits English text and code."""

    @property
    def terms(self) -> CompactionTerms:
        """The same for the core."""
        return CompactionTerms(
            max_kept_tokens=self.max_kept_tokens,
            max_summary_tokens=self.max_summary_tokens,
            bytes_per_token=self.bytes_per_token,
        )


def require_seal(services: Services) -> Seal:
    """What closes and opens checkpoints. Raises ConfigError: the gateway file has no keys."""
    if services.seal is None:
        raise ConfigError("Compaction needs keys: give the gateway file a section `compaction`.")
    return services.seal
