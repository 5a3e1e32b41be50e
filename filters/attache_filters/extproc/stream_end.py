"""The one error of everything that waits for an ext_proc stream which has ended."""

from __future__ import annotations

from attache_core.errors import AttacheError


class StreamEndedError(AttacheError):
    """The exchange is over: the client left, or Envoy ended it. The message says in which phase it was.

    Usually the filters are cancelled and never see it; it is what a clean-up gets that still asks for something below.
    """

    default_status = 499

    def __init__(self, phase: str) -> None:
        super().__init__(f"The exchange ended while {phase}.", code="stream_ended")
