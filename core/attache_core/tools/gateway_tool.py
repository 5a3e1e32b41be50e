"""A tool that the gateway executes itself, and what comes of one call of it. Knows no tool type and no transport.

What a client sees of a call is the tool's to say, in two steps: `begun` when its turn has come, `ended` with its
result. That is one item, or several, one after the other, such as a call and its output. Ids, indexes and numbers are
not: those are the sequencer's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from attache_core.events.model_events import ModelEvent
from attache_core.json_codec import Json
from attache_core.tools.call_errors import error_text


@dataclass(frozen=True, slots=True)
class CallResult:
    """How one call ended. Failure is data: exactly one of the two is set, or neither for an empty success.

    Attributes:
        output: the public `output` of the call's item, or None.
        error: the public `error` object of the call's item (see `call_errors`), or None.
    """

    output: str | None
    error: Json | None = None

    @property
    def model_text(self) -> str:
        """What the model is told of it."""
        return error_text(self.error) if self.error is not None else self.output or ""


@dataclass(frozen=True, slots=True)
class CallMade:
    """A call as the model made it.

    Attributes:
        key: the identity of its first item within the response, with which that of every further one begins; never
            shown.
        arguments: the JSON text as the model wrote it, perhaps broken.
        call_id: the model's, for items that have one.
    """

    key: str
    arguments: str
    call_id: str


class GatewayTool(ABC):
    """One callable tool. An object of it serves any number of calls, also at the same time."""

    __slots__ = ()

    @property
    def one_at_a_time(self) -> str | None:
        """A name: of all calls of tools with the same one, one at a time runs in a worker. None for no such limit."""
        return None

    @abstractmethod
    async def call(self, arguments: Json) -> CallResult:
        """Run it once. Cancelling the caller cancels the call; a failure of the tool is a result."""

    @abstractmethod
    def begun(self, call: CallMade) -> list[ModelEvent]:
        """It is being executed: the first event is an `ItemAdded` with the call's key."""

    @abstractmethod
    def ended(self, call: CallMade, result: CallResult) -> list[ModelEvent]:
        """It was executed, failed or was refused: the rest of its item, or a further one; the last is an `ItemDone`."""
