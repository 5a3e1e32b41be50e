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

    __slots__ = ("_broken_streams", "_limits", "idle_frames", "waiting_answers")

    def __init__(self, limits: Http2Limits) -> None:
        self._limits = limits
        self._broken_streams = 0
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

    def broken_stream(self) -> None:
        """A stream was ended for what the peer did."""
        self._broken_streams += 1
        if self._broken_streams > self._limits.max_broken_streams:
            raise ConnectionViolationError(ErrorCode.ENHANCE_YOUR_CALM, "too many streams that break the rules")

    def answered(self) -> None:
        """A stream was of use."""
        self._broken_streams = max(0, self._broken_streams - 1)
