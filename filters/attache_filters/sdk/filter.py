"""The kinds of filter, and what a process lends to each of them.

A filter is one object per worker process; a turn is one call of it, and everything that belongs to a turn lives in
that call's local variables. `below` may be called zero times (answer locally), once (pass through), or many times (a
loop). A filter does not know whether it shares an ext_proc stream with its neighbours, whether the client streams, or
how `below` reaches what is below.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from attache_core.events.event import Event
from attache_core.events.event_stream import later
from attache_core.storage.store import Store
from attache_core.tools.installed import installed_extensions
from attache_core.tools.mcp.servers import McpServers
from attache_core.tools.tool_type import ToolType
from attache_core.turn.below import Below
from attache_core.types.extensions import Extensions
from attache_core.types.turn import TurnRequest
from attache_filters.sdk.http import HttpBelow, HttpRequest, HttpResponse

if TYPE_CHECKING:
    # Its cryptography is loaded only where there are keys.
    from attache_core.turn.compaction.seal import Seal


class FilterConfig(BaseModel):
    """Base class of a filter's settings in the gateway file. Unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


@dataclass(frozen=True, slots=True)
class Services:
    """What lives as long as the worker process and is shared by its filters."""

    store: Store
    mcp: McpServers
    tools: tuple[ToolType, ...] = ()
    """Tool types that sections of the gateway file ask for, such as `web_search`, and those of other packages."""

    seal: Seal | None = None
    """What closes and opens the checkpoints of compacted conversations; None where the gateway file has no keys."""

    @property
    def extensions(self) -> Extensions:
        """What these types and the gateway's MCP servers add to what a request may say."""
        return installed_extensions(map(type, self.tools), self.mcp.settings.known_servers)


ConfigT = TypeVar("ConfigT", bound=FilterConfig)


class Filter(ABC, Generic[ConfigT]):
    """What all kinds of filter share. The class's docstring is its documentation."""

    config_type: ClassVar[type[FilterConfig]] = FilterConfig
    """The settings that an entry of the gateway file may carry besides `filter:`."""

    calls_below_again: ClassVar[bool] = False
    """Whether it may call below more than once, or yield before it does: it then gets a loop listener below it."""

    def __init__(self, config: ConfigT, services: Services) -> None:
        self.config = config
        self.services = services

    @classmethod
    def outlives_client(cls, config: ConfigT) -> bool:
        """Whether, with these settings, turns may go on when their clients go away (`TurnRequest.going_on`).

        It then gets a loop listener below it, for the request that Envoy holds goes with the client.
        """
        return False

    @classmethod
    def may_be_bypassed(cls, config: ConfigT) -> bool:
        """Whether, with these settings, a turn that needs no state and no tool of the gateway's passes it unchanged.

        Then a route may say `bypass: stateless`, and such turns go past the filter unseen, with their answers. A filter
        that must see every turn, such as a guardrail, leaves it as it is.
        """
        return False

    async def open(self) -> None:
        """Acquire what the filter needs for the life of the process. Called once, before the first turn."""

    async def close(self) -> None:
        """Release it. Called once, after the last turn."""


class TurnFilter(Filter[ConfigT]):
    """A filter over turns and canonical events."""

    @abstractmethod
    def __call__(self, turn: TurnRequest, below: Below) -> AsyncIterator[Event]:
        """Answer one turn. An async generator, or a plain function that returns `below(turn)` to step aside.

        Events end with exactly one terminal event. With `turn.stream` false, that event is all there need be.
        """


class RequestFilter(TurnFilter[ConfigT]):
    """A filter over turns alone, which changes or refuses them.

    What is answered passes it by as it is: the host asks for `request` only, and checks no event again.
    """

    @abstractmethod
    async def request(self, turn: TurnRequest) -> TurnRequest:
        """The turn to pass below. Raises AttacheError to refuse it."""

    def __call__(self, turn: TurnRequest, below: Below) -> AsyncGenerator[Event, None]:
        """What is below, asked with the turn that `request` makes."""

        async def asked() -> AsyncGenerator[Event, None]:
            return below(await self.request(turn))

        return later(asked)


class InferenceFilter(Filter[ConfigT]):
    """A filter with a turn above it and an inference server's own HTTP below it: the last hosted one of a chain.

    What comes back from below is in the server's dialect; what goes up is canonical.
    """

    @abstractmethod
    def __call__(self, turn: TurnRequest, below: HttpBelow) -> AsyncIterator[Event]:
        """Run one inference round. An async generator; its events end with exactly one terminal event."""


class HttpFilter(Filter[ConfigT]):
    """A filter over headers and bytes, for what is not a turn."""

    @abstractmethod
    async def __call__(self, request: HttpRequest, below: HttpBelow) -> HttpResponse:
        """Answer one exchange."""
