"""A tool that the gateway executes itself, and what comes of one call of it. Knows no tool type and no transport.

What a client sees of a call is the tool's to say, in two steps: `begun` when its turn has come, `ended` with its
result. Ids, indexes and numbers are not: those are the sequencer's.
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
        key: the identity of its item within the response; never shown.
        arguments: the JSON text as the model wrote it, perhaps broken.
        approval_request_id: the id of the item by which a user was asked for this call, if one was.
    """

    key: str
    arguments: str
    approval_request_id: str | None = None


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

    @abstractmethod
    def begun(self, call: CallMade) -> list[ModelEvent]:
        """The call's item is added, and it is being executed: the first event is an `ItemAdded` with the call's key."""

    @abstractmethod
    def ended(self, call: CallMade, result: CallResult) -> list[ModelEvent]:
        """It was executed, failed or was refused: the last event is the `ItemDone` with the call's key."""
