"""The one response of a turn: its sequencer over all rounds, and what of it is released to this client."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from attache_core.errors import AttacheError
from attache_core.events.event import Event
from attache_core.events.model_events import Finished, ModelEvent, Started
from attache_core.json_codec import Json
from attache_core.turn.open_response import open_response
from attache_core.turn.web_view import web_view
from attache_core.types.turn import TurnRequest
from attache_core.types.usage import add_usage


class ClientStream:
    """Every method returns the events to release: all of them, or the terminal one alone for a client that waits.

    Attributes:
        released: whether anything was released; from then on a failure is an event.
    """

    def __init__(self, turn: TurnRequest, tools: Sequence[Json]) -> None:
        """`tools` is what the response shows of the declarations."""
        self._sequencer = open_response(turn, tools)
        self._streams = turn.stream
        self._web = web_view(turn)
        self._owed: Sequence[ModelEvent] = ()
        self._usage: Json | None = None
        self.released = False

    @property
    def output(self) -> Sequence[Json]:
        """The finished items of the response, over all rounds; of some, the client sees less (see `web_view`)."""
        output: Sequence[Json] = self._sequencer.response["output"]
        return output

    def start(self) -> list[Event]:
        """`response.created` and `response.in_progress`, before anything is known."""
        return self._release(self._sequencer.start())

    def progress(self) -> list[Event]:
        """A sign of life, for when nothing has come to show."""
        return self._release(self._sequencer.progress())

    def owe(self, said: Sequence[ModelEvent]) -> list[Event]:
        """Show these before anything of the model: now if the response has begun, else as soon as it does."""
        self._owed = said
        return self._release(self._pay()) if self._sequencer.started else []

    def show(self, said: Iterable[ModelEvent]) -> list[Event]:
        """Show what the model, or a tool, says."""
        shown: list[Event] = []
        for event in said:
            if self._owed and not isinstance(event, Started):
                shown += self._pay()
            for cited in (event,) if self._web is None else self._web.said(event):
                shown += self._say(cited)
        return self._release(shown)

    def add_usage(self, usage: Json | None) -> None:
        """Count what a round used."""
        self._usage = add_usage(self._usage, usage)

    def finish(self, finished: Finished) -> list[Event]:
        """End the response as its last round ended, with the usage of all rounds."""
        ended = Finished(finished.status, self._usage, finished.error, finished.incomplete_details)
        return self._release(self._pay() + self._sequencer.finish(ended, completed_at=int(time.time())))

    def fail(self, error: AttacheError) -> list[Event]:
        """End it as failed."""
        return self.finish(Finished("failed", error={"code": error.code, "message": error.message}))

    def _pay(self) -> list[Event]:
        owed, self._owed = self._owed, ()
        return [shown for event in owed for shown in self._say(event)]

    def _say(self, said: ModelEvent) -> list[Event]:
        if self._streams:
            return self._sequencer.emit(said)
        self._sequencer.keep(said)
        return []

    def _release(self, events: list[Event]) -> list[Event]:
        released = events if self._streams else [event for event in events if event.is_terminal]
        self.released = self.released or bool(released)
        return released if self._web is None else [self._web.shown(event) for event in released]
