"""When a worker process looks for garbage that refers to itself.

A worker's start makes some 150,000 objects that live as long as the process. While it starts, nothing is looked for:
passes over them took a twelfth of its CPU (344 ms, and now 127), one of them 115 ms, in which the first turns waited;
what they would have found, 2 MB, stays. Then all are frozen, and no later pass looks at them.

What turns leave behind is freed by counting references, so passes are for little, and with Python's thresholds (700,
10, 10) they took 12 % of the CPU of a worker with 256 streams (523 of 4429 ms), one of them, over everything, 108 ms;
with these thresholds 3 % (88 of 3272 ms), the longest pass 18 ms. With 64 connections of short turns it was 12 % and is
6 %, the longest pass 62 ms either way. (CPU time by `gc.callbacks` on a busy machine of two cores, Python 3.11.)
"""

from __future__ import annotations

import gc

THRESHOLDS = (10_000, 20, 50)
"""Objects made and not freed before a pass over the young ones; such passes before one over the middle-aged; such
passes before one over all."""


def hold_off() -> None:
    """Look for nothing: the process starts."""
    gc.disable()


def begin() -> None:
    """The process has started: what exists now is never looked at again, and the rest by `THRESHOLDS`."""
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    gc.enable()
