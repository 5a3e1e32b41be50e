"""How we say that a connection ends. Source: RFC 9113, section 6.8.

In peace it takes two GOAWAY frames: the first promises nothing of which stream is the last, for requests may be on
their way; the second, once the peer has read the first, names it. That the peer has is shown by a PING's
acknowledgement.
"""

from __future__ import annotations

from attache_filters.extproc.http2.errors import ErrorCode
from attache_filters.extproc.http2.frames import MAX_STREAM_ID, FrameType, frame, goaway_frame
from attache_filters.extproc.http2.outgoing import Outgoing

_PING = b"draining"


class Leaving:
    """Our GOAWAY frames on one connection.

    Attributes:
        last_served: streams after this one are not served; None as long as all are.
    """

    def __init__(self, outgoing: Outgoing) -> None:
        self._outgoing = outgoing
        self._begun = False
        self.last_served: int | None = None

    def begin(self) -> None:
        """Say that no more streams are wanted."""
        if not self._begun:
            self._begun = True
            self._outgoing.put(goaway_frame(MAX_STREAM_ID, ErrorCode.NO_ERROR))
            self._outgoing.put(frame(FrameType.PING, 0, 0, _PING))

    def on_pong(self, payload: bytes, last_id: int) -> None:
        """Say which stream was the last, if the peer has read that no more are wanted."""
        if self._begun and self.last_served is None and payload == _PING:
            self.end(last_id, ErrorCode.NO_ERROR)

    def end(self, last_id: int, code: int, reason: str = "") -> None:
        """Say which stream was the last. What was once said of it is never taken back."""
        self.last_served = last_id if self.last_served is None else min(last_id, self.last_served)
        self._outgoing.put(goaway_frame(self.last_served, code, reason.encode()))

    def leaves_out(self, stream_id: int) -> bool:
        """Whether the peer was told that the stream is not served."""
        return self.last_served is not None and stream_id > self.last_served
