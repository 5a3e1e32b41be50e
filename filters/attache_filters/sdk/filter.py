"""The two kinds of filter, and what a process lends to each of them.

A filter is one object per worker process; a turn is one call of it, and everything that belongs to a turn lives in
that call's local variables. `below` may be called zero times (answer locally), once (pass through), or many times (a
loop). A filter does not know whether it shares an ext_proc stream with its neighbours, whether the client streams, or
how `below` reaches what is below.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from attache_core.events.event import Event
from attache_core.storage.store import Store
from attache_core.tools.mcp.servers import McpServers
from attache_core.types.turn import TurnRequest
from attache_filters.sdk.http import HttpBelow, HttpRequest, HttpResponse

Below = Callable[[TurnRequest], AsyncIterator[Event]]
"""Runs what is below a filter, once per call: canonical events, the last of which is terminal.

Raises `AttacheError` before the first event; after it, a failure is the terminal event `response.failed`.
"""


class FilterConfig(BaseModel):
    """Base class of a filter's settings in the gateway file. Unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


@dataclass(frozen=True, slots=True)
class Services:
    """What lives as long as the worker process and is shared by its filters."""

    store: Store
    mcp: McpServers


ConfigT = TypeVar("ConfigT", bound=FilterConfig)


class Filter(ABC, Generic[ConfigT]):
    """What both kinds of filter share. The class's docstring is its documentation."""

    config_type: ClassVar[type[FilterConfig]] = FilterConfig
    """The settings that an entry of the gateway file may carry besides `filter:`."""

    calls_below_again: ClassVar[bool] = False
    """Whether it may call below more than once, or yield before it does: it then gets a loop listener below it."""

    def __init__(self, config: ConfigT, services: Services) -> None:
        self.config = config
        self.services = services

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


class HttpFilter(Filter[ConfigT]):
    """A filter over headers and bytes, for what is not a turn."""

    @abstractmethod
    async def __call__(self, request: HttpRequest, below: HttpBelow) -> HttpResponse:
        """Answer one exchange."""
