"""A tool that the gateway executes itself, and what comes of one call of it. Knows no tool type and no transport."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

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


class GatewayTool(Protocol):
    """One callable tool of one server."""

    @property
    def server_label(self) -> str:
        """Which declaration of the request it came from."""
        ...

    @property
    def name(self) -> str:
        """Its own name, which may differ from the one that the model sees."""
        ...

    async def call(self, arguments: Json) -> CallResult:
        """Run it once. Cancelling the caller cancels the call; a failure of the tool is a result."""
        ...
