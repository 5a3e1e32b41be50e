"""When a delta of a stream was written, told in the delta itself, so that whoever reads it can say how long it took.

Pure. A stamp is 16 digits: microseconds of CLOCK_MONOTONIC, which all processes of one machine share. What repeats the
whole text at the end of an answer repeats the stamps of its deltas.
"""

from __future__ import annotations

from itertools import chain

SENT_AT = "@@@@@@@@@@@@@@@@"
"""What stands in an event for the time at which it is written; as long as a stamp."""

_PLACE = SENT_AT.encode()
_DELTA = b".delta"


class Stamps:
    """The stamps of one answer, in order."""

    def __init__(self) -> None:
        self._given: list[bytes] = []

    def fill(self, event: bytes, now_us: int) -> bytes:
        """A delta with the time `now_us` in its place; any other event with those of the deltas before it."""
        first, *rest = event.split(_PLACE)
        if rest and _DELTA in first:
            self._given.append(b"%016d" % now_us)
            return self._given[-1].join((first, *rest))
        return first + b"".join(chain.from_iterable(zip(self._given, rest, strict=False)))
