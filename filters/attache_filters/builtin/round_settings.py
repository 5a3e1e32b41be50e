"""What every filter that runs inference rounds may be set to, whichever API the inference server speaks."""

from __future__ import annotations

from functools import cached_property

from pydantic import Field

from attache_core.turn.round import RoundLimits
from attache_filters.sdk.filter import FilterConfig

DEFAULTS = RoundLimits()


class RoundSettings(FilterConfig):
    """The bounds of one round."""

    max_event_bytes: int = Field(default=DEFAULTS.max_event_bytes, ge=1024)
    """Bytes of one server-sent event of the inference server; a larger one fails the round."""

    max_response_bytes: int = Field(default=DEFAULTS.max_response_bytes, ge=1024)
    """Bytes that are kept of one round's answer; a larger one fails the round."""

    error_body_timeout_s: float = Field(default=DEFAULTS.error_body_timeout_s, gt=0, le=60)
    """Seconds that the body of an error may take; what came by then is what counts."""

    headers_timeout_s: float = Field(default=DEFAULTS.headers_timeout_s, gt=0, le=86_400)
    """Seconds until the answer begins: with one that is not streamed, as long as the model takes to make it. The
    upstream's setting of that name, unless it is given here; Envoy ends a round at the longer of the upstream's own two
    times, whatever is said here."""

    idle_timeout_s: float = Field(default=DEFAULTS.idle_timeout_s, gt=0, le=86_400)
    """Seconds that an answer that has begun may be silent. The upstream's setting of that name, unless it is given
    here."""

    @cached_property
    def limits(self) -> RoundLimits:
        """The same for `run_round`."""
        return RoundLimits(
            max_event_bytes=self.max_event_bytes,
            max_response_bytes=self.max_response_bytes,
            error_body_timeout_s=self.error_body_timeout_s,
            headers_timeout_s=self.headers_timeout_s,
            idle_timeout_s=self.idle_timeout_s,
        )
