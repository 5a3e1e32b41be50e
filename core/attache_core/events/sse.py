"""Server-sent events as bytes: frames out of any stream of chunks, and one canonical event into a frame.

Knows WHATWG HTML, "parsing an event stream"; is unaware of JSON and of what events mean. Invariants: where the bytes
are cut changes nothing (a cut may fall inside a character, or between CR and LF); only LF, CR LF and CR end a line,
so U+2028 and U+0085 inside JSON do not; what is held back is bounded.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from attache_core import json_codec
from attache_core.errors import UpstreamError
from attache_core.events.error_codes import OVER_LIMIT
from attache_core.events.event import Event

DEFAULT_MAX_LINE_BYTES = 16 * 1024 * 1024
"""One line, and all data of one event. The API's largest events are terminal ones, which repeat the whole output."""

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class SseFrame:
    """One dispatched event.

    Attributes:
        event: the last `event:` field, or None when there was none (or an empty one).
        data: the `data:` fields, joined with LF.
    """

    event: str | None
    data: bytes


class SseDecoder:
    """Incremental decoder of one event stream."""

    def __init__(self, *, max_line_bytes: int = DEFAULT_MAX_LINE_BYTES) -> None:
        self._max_line_bytes = max_line_bytes
        self._head: bytes | None = b""
        """What came so far while it may still be a byte order mark; None once that is settled."""
        self._line: list[bytes] = []
        self._line_size = 0
        self._after_cr = False
        self._event: str | None = None
        self._data: list[bytes] = []
        self._data_size = 0

    def feed(self, data: bytes) -> list[SseFrame]:
        """The frames that `data` completes, in order; empty when none is complete yet.

        Raises:
            UpstreamError: a line, or the data of one event, is longer than `max_line_bytes`.
        """
        if self._head is not None:
            data = self._strip_bom(data)
        if self._after_cr and data:
            self._after_cr = False
            data = data.removeprefix(b"\n")
        if b"\r" in data:
            self._after_cr = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        first, *rest = data.split(b"\n")
        self._hold(first)
        if not rest:
            return []
        frames: list[SseFrame] = []
        self._take(b"".join(self._line), frames)
        for line in rest[:-1]:
            self._take(line, frames)
        self._line, self._line_size = [], 0
        self._hold(rest[-1])
        return frames

    def close(self) -> None:
        """The stream ended. An event without its empty line is not one, and is forgotten."""
        self._head, self._line, self._line_size, self._after_cr = b"", [], 0, False
        self._event, self._data, self._data_size = None, [], 0

    def _strip_bom(self, data: bytes) -> bytes:
        head = (self._head or b"") + data
        if len(head) < len(_BOM) and _BOM.startswith(head):
            self._head = head
            return b""
        self._head = None
        return head.removeprefix(_BOM)

    def _hold(self, piece: bytes) -> None:
        if piece:
            self._line_size += len(piece)
            self._check(self._line_size)
            self._line.append(piece)

    def _take(self, line: bytes, frames: list[SseFrame]) -> None:
        if not line:
            self._dispatch(frames)
            return
        self._check(len(line))
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data_size += len(value) + 1
            self._check(self._data_size - 1)
            self._data.append(value)
        elif name == b"event":
            self._event = value.decode(errors="replace") or None

    def _dispatch(self, frames: list[SseFrame]) -> None:
        if self._data:
            frames.append(SseFrame(self._event, b"\n".join(self._data)))
            self._data, self._data_size = [], 0
        self._event = None

    def _check(self, size: int) -> None:
        if size > self._max_line_bytes:
            raise UpstreamError(
                f"The inference server sent an event of more than {self._max_line_bytes} bytes.", code=OVER_LIMIT
            )


def encode_event(event: Event) -> bytes:
    """One event on the wire: `event:` with its type, `data:` with its payload, an empty line."""
    return b"event: %b\ndata: %b\n\n" % (event.type.encode(), json_codec.encode(event.data))


def encode_events(events: Iterable[Event]) -> bytes:
    """Several of them, in a row."""
    return b"".join(map(encode_event, events))
