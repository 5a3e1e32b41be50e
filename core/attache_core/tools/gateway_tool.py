"""A tool that the gateway executes itself, and what comes of one call of it. Knows no tool type and no transport.

What a client sees of a call is the tool's to say: `begun` when its turn has come, `progressed` where the tool reports
how far it is, `ended` with its result. That is one item, or several, one after the other, such as a call and its
output. Ids, indexes and numbers are not: those are the sequencer's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
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
        approval_request_id: the id of the item by which a user was asked for this call, if one was.
    """

    key: str
    arguments: str
    call_id: str
    approval_request_id: str | None = None


@dataclass(frozen=True, slots=True)
class CallProgress:
    """How far a running call has come.

    Attributes:
        done: in a unit of the tool's choice; it grows.
        total: what `done` will be at the end, where that is known.
        message: what is being done.
    """

    done: float
    total: float | None = None
    message: str | None = None


Report = Callable[[CallProgress], None]
"""Takes what a call reports. It may be used as often as one likes: only the latest is kept, until it is told."""


class GatewayTool(ABC):
    """One callable tool. An object of it serves any number of calls, also at the same time."""

    __slots__ = ()

    @property
    def one_at_a_time(self) -> str | None:
        """A name: of all calls of tools with the same one, one at a time runs in a worker. None for no such limit."""
        return None

    @property
    def needs_approval(self) -> bool:
        """Whether a user must approve each call before it runs. The API has approvals of MCP tools only."""
        return False

    @property
    def target(self) -> str:
        """Where its calls go and with whose rights, as one text: an approval holds as long as it is the same.

        It is never shown; what is kept is a fingerprint of it (see `approval_fingerprint`).
        """
        return ""

    @abstractmethod
    async def call(self, arguments: Json) -> CallResult:
        """Run it once. Cancelling the caller cancels the call; a failure of the tool is a result."""

    async def call_reporting(self, arguments: Json, report: Report) -> CallResult:
        """The same for a tool that can say how far it is; one that cannot has `call` alone."""
        del report
        return await self.call(arguments)

    @abstractmethod
    def begun(self, call: CallMade) -> list[ModelEvent]:
        """It is being executed: the first event is an `ItemAdded` with the call's key."""

    def progressed(self, call: CallMade, progress: CallProgress) -> list[ModelEvent]:
        """It runs, and has come thus far: `ItemEvent`s with the call's key. Only asked between `begun` and `ended`."""
        del call, progress
        return []

    @abstractmethod
    def ended(self, call: CallMade, result: CallResult) -> list[ModelEvent]:
        """It was executed, failed or was refused: the rest of its item, or a further one; the last is an `ItemDone`."""
