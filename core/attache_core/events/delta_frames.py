"""Runs of deltas in the bytes of an event stream, recognised without parsing each of them.

A server writes the deltas of one text alike: only the text, the number and the padding differ. So from one of them that
was parsed a form is learned, the bytes around these three; where the same bytes come again, what stands between them is
decoded for the whole run at once. Knows server-sent events and JSON; is unaware of what the events mean, but for which
are deltas. Invariants:

- What comes out says the same as parsing every frame, in the same order, wherever the bytes are cut. What looks in any
  way unusual is left to the `SseDecoder`, and what is no JSON to whoever parses the frame.
- A form is kept only if it was shown that the bytes between are those three fields, and nothing else is: with other
  values there, the payload is the same but for them. JSON has no context, so then it is so for any value.
- The values of a run are joined with line ends for decoding. No frame's data has one, and no JSON string or number can,
  so each value is one whole string or number, or none of the run is taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from attache_core import json_codec
from attache_core.errors import UpstreamError
from attache_core.events.answer_json import answer_object
from attache_core.events.delta_run import DeltaRun, delta_run
from attache_core.events.dialects.event_types import DELTAS
from attache_core.events.sse import DEFAULT_MAX_LINE_BYTES, SseDecoder, SseFrame
from attache_core.json_codec import Json

MAX_MISSES: Final = 8
"""How often a form may be learned in vain before this stream is parsed frame by frame."""

MAX_RUN_BYTES: Final = 32 * 1024
"""How far a run is looked for at once: however many runs are in what came, each byte is looked at a few times only."""

_FRAME_END: Final = b"\n\n"
_FIELD: Final = re.compile(rb'"(delta|obfuscation|sequence_number)":\s*("(?:[^"\\]|\\.)*"|\d+)')
_LONG_INTEGER: Final = re.compile(rb"\d{19}")
"""How an integer so long is read depends on the length of its frame."""

_OTHER_VALUES: Final[Json] = {"delta": "\ue000", "obfuscation": "\ue001", "sequence_number": 1 << 62}

T = TypeVar("T")


class FrameReader:
    """Incremental reader of one answer's event stream: a `SseDecoder` that knows runs of deltas."""

    def __init__(self, *, max_line_bytes: int = DEFAULT_MAX_LINE_BYTES) -> None:
        self._decoder = SseDecoder(max_line_bytes=max_line_bytes)
        self._max_line_bytes = max_line_bytes
        self._form: _Form | None = None
        self._misses = 0
        """How often a form was learned, or did not hold, since one was of use."""

    def feed(self, data: bytes) -> Iterable[SseFrame | DeltaRun]:
        """What `data` completes, in order.

        Raises:
            UpstreamError: as `SseDecoder.feed`; perhaps only while what comes back is iterated over.
        """
        several = -1 < data.find(_FRAME_END) < len(data) - len(_FRAME_END)
        may_be_alike = self._misses < MAX_MISSES and len(data) <= self._max_line_bytes and b"\r" not in data
        return self._feed(data) if several and may_be_alike else self._decoder.feed(data)

    def _feed(self, data: bytes) -> Iterator[SseFrame | DeltaRun]:
        at = 0
        while at < len(data):
            run, after = self._run(data, at)
            if run is not None:
                yield run
                at = after
                continue
            stop = data.find(_FRAME_END, at)
            piece = data[at : stop + len(_FRAME_END)] if stop >= 0 else data[at:]
            at += len(piece)
            for frame in self._decoder.feed(piece):
                yield frame
                self._learn(frame, piece)

    def close(self) -> None:
        """See `SseDecoder.close`."""
        self._decoder.close()

    def _run(self, data: bytes, at: int) -> tuple[DeltaRun | None, int]:
        """The run that begins at `at`, and where it ends; None where there is no run of two."""
        form = self._form
        if form is None or not data.startswith(form.head, at) or not self._decoder.is_between_frames:
            return None, at
        frames, after = form.cut(data, at)
        if len(frames) < 2:
            return None, at
        run = form.read(frames)
        if run is None:
            self._form = None
            self._misses += 1
        else:
            self._misses = 0
        return run, after

    def _learn(self, frame: SseFrame, written: bytes) -> None:
        if frame.event not in DELTAS or written != b"event: %b\ndata: %b\n\n" % (frame.event.encode(), frame.data):
            return
        if self._form is not None and self._form.resembles(written):
            self._misses = 0
            return
        self._form = _learned(frame.event, frame.data)
        self._misses += 1


@dataclass(frozen=True, slots=True)
class _Form:
    """How the deltas of one text are written.

    Attributes:
        payload: that of one of them.
        fields: those that differ, in the order in which they are written.
        head: a frame up to the first of them.
        between: what stands between each and the next.
        end: what stands behind the last, the empty line included.
    """

    payload: Json
    fields: Sequence[str]
    head: bytes
    between: Sequence[bytes]
    end: bytes

    def resembles(self, frame: bytes) -> bool:
        """Whether the frame has at least the same bytes around what differs."""
        ends = frame.startswith(self.head) and frame.endswith(self.end)
        return ends and all(separator in frame for separator in self.between)

    def cut(self, data: bytes, at: int) -> tuple[list[bytes], int]:
        """The whole frames from `at` on that look like it, each without head and end, and where they end."""
        frames = data[at + len(self.head) : at + MAX_RUN_BYTES].split(self.end + self.head)
        last = next((place for place, frame in enumerate(frames) if b"\n" in frame), len(frames) - 1)
        line, _, behind = frames[last].partition(b"\n")
        whole = behind.startswith(b"\n") and (line + _FRAME_END).endswith(self.end)
        frames[last:] = [line.removesuffix(self.end[: -len(_FRAME_END)])] if whole else []
        return frames, at + sum(map(len, frames)) + len(frames) * (len(self.head) + len(self.end))

    def read(self, frames: Sequence[bytes]) -> DeltaRun | None:
        """The run of frames that were cut so; None unless each of them has this form."""
        columns: dict[str, Sequence[bytes]] = {}
        for name, separator in zip(self.fields, self.between, strict=False):
            columns[name], _, frames = zip(*(frame.partition(separator) for frame in frames), strict=True)
        columns[self.fields[-1]] = frames
        numbers, paddings = columns.get("sequence_number"), columns.get("obfuscation")
        try:
            return delta_run(
                self.payload,
                _decoded(columns["delta"], str),
                None if numbers is None else _decoded(numbers, int),
                None if paddings is None else _decoded(paddings, str),
            )
        except ValueError:
            return None


def _learned(kind: str, data: bytes) -> _Form | None:
    """The form of the deltas like this one; None where it is not clear what differs in them."""
    found = list(_FIELD.finditer(data))
    names = [match[1].decode() for match in found]
    if "delta" not in names or len(set(names)) < len(names) or _LONG_INTEGER.search(data):
        return None
    places = [0, *(place for match in found for place in match.span(2)), len(data)]
    head, *between, end = [data[start:stop] for start, stop in zip(places[::2], places[1::2], strict=True)]
    form = _Form(_payload(data), names, b"event: %b\ndata: %b" % (kind.encode(), head), between, end + _FRAME_END)
    others = [json_codec.encode(_OTHER_VALUES[name]) for name in names]
    changed = head + b"".join(value + text for value, text in zip(others, [*between, end], strict=True))
    same = _payload(changed) == {**form.payload, **{name: _OTHER_VALUES[name] for name in names}}
    return form if same and form.payload.get("type") == kind and not form.payload.get("logprobs") else None


def _payload(data: bytes) -> Json:
    """The payload; an empty one where there is none."""
    try:
        return answer_object(data)
    except UpstreamError:
        return {}


def _decoded(texts: Sequence[bytes], kind: type[T]) -> list[T]:
    """One value of that type for each of the texts. Raises ValueError where there is anything else."""
    values: list[T] = json_codec.decode(b"[%b]" % b",\n".join(texts))
    if len(values) != len(texts) or set(map(type, values)) != {kind}:
        raise ValueError("the deltas are not alike")
    return values
