"""One open stream. Source: RFC 9113, section 5.1.

A stream is open until its response has ended or either side has reset it: a server that has answered wants no more of
the request (8.1). So two facts say all of an open stream's state, whether its request has ended and whether it was
answered.
"""

from __future__ import annotations

from collections import deque

from attache_filters.extproc.http2.windows import ReceiveWindow


class Stream:
    """An open stream.

    Attributes:
        request_ended: the peer sends no more.
        answered: our first header was sent.
        due: the body that the request's content-length still promises; None without one.
        window: what the peer may send.
        send_window: what the peer takes; negative after it made its windows smaller.
        waiting: body that no window has let pass, and `unsent`, its size.
        ending: the last frame, to be sent after `waiting`: trailers, or an empty DATA; None until the response ends.
    """

    __slots__ = (
        "answered",
        "due",
        "ending",
        "id",
        "request_ended",
        "send_window",
        "unsent",
        "waiting",
        "window",
    )

    def __init__(self, stream_id: int, receive_window: int, send_window: int) -> None:
        self.id = stream_id
        self.request_ended = False
        self.answered = False
        self.due: int | None = None
        self.window = ReceiveWindow(receive_window)
        self.send_window = send_window
        self.waiting: deque[memoryview] = deque()
        self.unsent = 0
        self.ending: bytes | None = None
