"""What a peer has sent that costs us and brings nothing, counted; there is no clock. `Http2Limits` says each bound."""

from __future__ import annotations

from attache_filters.extproc.http2.errors import ConnectionViolationError, ErrorCode
from attache_filters.extproc.http2.limits import Http2Limits


class FloodGauge:
    """The counts of one connection; each method raises ENHANCE_YOUR_CALM once its count is over the limit.

    Attributes:
        idle_frames: in a row; set to 0 by whoever sees progress.
        waiting_answers: since output was last taken; set to 0 by whoever takes it.
    """

    __slots__ = ("_fruitless_resets", "_limits", "idle_frames", "waiting_answers")

    def __init__(self, limits: Http2Limits) -> None:
        self._limits = limits
        self._fruitless_resets = 0
        self.idle_frames = 0
        self.waiting_answers = 0

    def idle_frame(self) -> None:
        """A frame brought nothing."""
        self.idle_frames += 1
        if self.idle_frames > self._limits.max_idle_frames:
            raise ConnectionViolationError(ErrorCode.ENHANCE_YOUR_CALM, "too many frames that bring nothing")

    def answer(self) -> None:
        """A frame has to be answered."""
        self.waiting_answers += 1
        if self.waiting_answers > self._limits.max_waiting_answers:
            raise ConnectionViolationError(ErrorCode.ENHANCE_YOUR_CALM, "too many frames to be answered")

    def fruitless_reset(self) -> None:
        """A stream ended in vain."""
        self._fruitless_resets += 1
        if self._fruitless_resets > self._limits.max_fruitless_resets:
            raise ConnectionViolationError(ErrorCode.ENHANCE_YOUR_CALM, "too many streams that are reset")

    def answered(self) -> None:
        """A stream was of use."""
        self._fruitless_resets = max(0, self._fruitless_resets - 1)
