"""What becomes of a turn whose client goes away before its end.

Knows what the client of a turn would have been told so far; is unaware of stores and of how anybody learns that a
client has gone: to a turn that does not outlive its client, that is being cancelled or closed. Invariant: a response
that is kept as `cancelled` says what was said, its open items as incomplete, and has no usage, for nobody knows what a
round used that was broken off. Source: API reference, "Cancel a response", for the status.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from attache_core.events.event import Event
from attache_core.events.event_stream import Batch
from attache_core.events.failed_response import error_of
from attache_core.events.watch import StreamWatch
from attache_core.json_codec import Json
from attache_core.turn.open_response import open_response
from attache_core.types.turn import TurnRequest, Unattended

OnDisconnect = Literal["cancel", "store_cancelled", "finish"]

DEFAULT_FINISH_TIMEOUT_S = 600.0
DEFAULT_MAX_UNATTENDED = 256


@dataclass(frozen=True, slots=True)
class Departure:
    """What becomes of turns whose clients go away.

    Attributes:
        on_disconnect: `cancel`: nothing is stored; `store_cancelled`: the turn is stored as cancelled; `finish`: it
            goes on to its end within the two bounds, and is stored as cancelled where they do not suffice.
        finish_timeout_s: how long a turn goes on without its client.
        max_unattended_turns: how many do so at a time, in one process.
    """

    on_disconnect: OnDisconnect = "cancel"
    finish_timeout_s: float = DEFAULT_FINISH_TIMEOUT_S
    max_unattended_turns: int = DEFAULT_MAX_UNATTENDED


class SaidSoFar:
    """What was said in one turn, whether or not its client reads it as it comes.

    Attributes:
        asked: the turn as it is asked of those below: streamed, for only of a stream is it known how far it had come.
        final: the response at its end, once that is known.
    """

    def __init__(self, turn: TurnRequest, departure: Departure) -> None:
        self._turn = turn
        self._watch = StreamWatch()
        self.asked = _streamed(turn)
        if departure.on_disconnect == "finish":
            terms = Unattended(departure.finish_timeout_s, departure.max_unattended_turns)
            self.asked = self.asked.going_on(terms)
        self.final: Json | None = None

    def observe(self, batch: Batch) -> None:
        """Take note of some events.

        Raises:
            AttacheError: one says that the turn failed, and its client waits for an answer in one piece.
        """
        for event in batch:
            if event.is_terminal:
                self._end(event.data["response"])
            else:
                self._watch.observe(event)

    def _end(self, response: Json) -> None:
        if response.get("status") == "failed" and not self._turn.stream:
            raise error_of(response.get("error"))
        self.final = response

    def is_for_client(self, event: Event) -> bool:
        """Whether the client is to get this event."""
        return self._turn.stream or event.is_terminal

    def response(self) -> Json:
        """The response as it is to be stored now: its end if that is known, or else as cancelled."""
        if self.final is not None:
            return self.final
        said = self._watch.cut_short() or open_response(self._turn).response
        return {**said, "status": "cancelled", "completed_at": None, "incomplete_details": None, "usage": None}


def _streamed(turn: TurnRequest) -> TurnRequest:
    """The same turn, whose events are all told; padding is for a client that streams."""
    if turn.stream:
        return turn
    options = {**(turn.body.get("stream_options") or {}), "include_obfuscation": False}
    return turn.with_body(stream=True, stream_options=options)
